// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// transaction is one Apply, or what recovery does with one that was cut off. The order is the
// promise:
//
//  1. the journal says what is there and what is to come (runPhases);
//  2. new files, and copies of the old ones, are durable under temporary names (stageFiles);
//  3. the new files take their names, one rename each, and the directories are durable (swapFiles);
//  4. the journal says that the set is whole (markApplied). That is the point of no return.
//
// What fails before 4 is undone by renames alone, which need no room on the disk.
type transaction struct {
	sys     fsys
	store   *Store
	limit   int64 // bytes of a file
	report  func(Damage)
	j       journal
	content [][]byte       // of the new files
	dirs    map[string]int // open directories by path; -1 = missing
	cutOff  bool           // this is recovery, not the Apply itself
}

func (s *FileSet) newTransaction(store *Store) *transaction {
	return &transaction{
		sys: s.sys, store: store, limit: s.o.MaxPayload, report: s.o.OnDamage, dirs: map[string]int{},
		j: journal{Version: journalVersion, Phase: phaseApplying, Tag: digestOf([]byte(s.dir)).String()},
	}
}

func (t *transaction) closeDirs() {
	for _, fd := range t.dirs {
		if fd >= 0 {
			t.sys.close(fd)
		}
	}
}

// inspectFiles finds out what is there. It changes nothing.
func (t *transaction) inspectFiles(targets []target) error {
	for _, g := range targets {
		if err := t.openDir(g.dir); err != nil {
			return err
		}
		if t.dirs[g.dir] < 0 && g.Absent {
			continue // nothing is there
		}
		if t.dirs[g.dir] < 0 {
			t.addMissing(g.dir)
		}
		old, _, err := t.inspectFile(g.dir, g.name)
		if err != nil {
			return fmt.Errorf("file %s: %w", quoted(g.Path), err)
		}
		c := change{Dir: g.dir, Name: g.name, Old: old}
		if c.New, err = t.wantedState(g); err != nil {
			return err
		}
		if c.Inode, err = t.findInode(g.dir); err != nil {
			return err
		}
		t.j.Files = append(t.j.Files, c)
		t.content = append(t.content, g.Content)
	}
	return nil
}

// openDir opens a directory, unless it is open. One that is missing is entered as such.
func (t *transaction) openDir(dir string) error {
	if fd, ok := t.dirs[dir]; ok && fd >= 0 {
		return nil
	}
	fd, err := t.sys.openPath(dir)
	if err != nil {
		fd = -1
	}
	if isGone(err) {
		err = nil
	}
	t.dirs[dir] = fd
	return err
}

// findInode gives the inode of a directory or, where Apply makes it, of the nearest one above that
// was there. Unlike the number of a device, it stays when a file system is mounted again.
func (t *transaction) findInode(dir string) (uint64, error) {
	for slices.Contains(t.j.Made, dir) {
		dir = filepath.Dir(dir)
	}
	info, err := t.sys.statPath(dir)
	if isGone(err) {
		return 0, nil
	}
	return info.id.ino, err
}

// addMissing enters a directory, and those above it that are missing, upper ones first.
func (t *transaction) addMissing(dir string) {
	var missing []string
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := t.sys.statPath(at); err == nil {
			break
		}
		missing = append(missing, at)
	}
	for _, at := range slices.Backward(missing) {
		if !slices.Contains(t.j.Made, at) {
			t.j.Made = append(t.j.Made, at)
		}
	}
}

// wantedState is the state that a file is to have. The group of a file in a directory with the setgid
// bit is that of the directory.
func (t *transaction) wantedState(g target) (fileState, error) {
	if g.Absent {
		return fileState{}, nil
	}
	w := fileState{
		Present: true, Digest: digestOf(g.Content).String(), Mode: uint32(g.Mode),
		UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()),
	}
	if w.Mode == 0 {
		w.Mode = permFile
	}
	if g.Owner != "" {
		var err error
		w.UID, w.GID, err = g.parseOwner()
		return w, err
	}
	if t.dirs[g.dir] < 0 {
		return w, nil
	}
	info, err := t.sys.stat(t.dirs[g.dir])
	if info.perm&permSetgid != 0 {
		w.GID = info.gid
	}
	return w, err
}

// inspectFile says what a file is, and what it holds. Anything but a plain file of no more than the limit
// is refused.
func (t *transaction) inspectFile(dir, name string) (fileState, []byte, error) {
	d := t.dirs[dir]
	if d < 0 {
		return fileState{}, nil, nil
	}
	info, err := t.sys.statAt(d, name)
	if isGone(err) {
		return fileState{}, nil, nil
	}
	if err == nil && !info.regular {
		err = fmt.Errorf("%w: not a regular file", ErrUntrusted)
	}
	if err != nil {
		return fileState{}, nil, err
	}
	fd, err := t.sys.openAt(d, name, openRead)
	if isTrap(err) {
		err = fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	if err != nil {
		return fileState{}, nil, err
	}
	defer t.sys.close(fd)
	if info, err = t.sys.stat(fd); err != nil {
		return fileState{}, nil, err
	}
	if info.size > t.limit {
		return fileState{}, nil, fmt.Errorf("%w: %d bytes, may have %d", ErrTooLarge, info.size, t.limit)
	}
	data, err := readFrom(t.sys, fd, info.size)
	return fileState{
		Present: true, Digest: digestOf(data).String(), Mode: info.perm, UID: info.uid, GID: info.gid,
	}, data, err
}

// readFrom reads a file of a known size. One that has another size now is being written by another
// program.
func readFrom(sys fsys, fd int, size int64) ([]byte, error) {
	data := make([]byte, size+1)
	at := 0
	for at < len(data) {
		n, err := sys.readAt(fd, data[at:], int64(at))
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		at += n
	}
	if int64(at) != size {
		return nil, errors.New("the file changed while it was read")
	}
	return data[:at], nil
}

func (t *transaction) runPhases(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := t.j.putJournal(ctx, t.store); err != nil {
		return err
	}
	err := t.stageFiles(ctx)
	if err == nil {
		err = t.swapFiles(ctx)
	}
	if err == nil {
		err = t.markApplied(ctx)
	}
	if err == nil {
		t.removeTemps()
		return nil
	}
	if errors.Is(err, ErrIndeterminate) { // the journal says that the set is whole, or does not: a crash decides
		return err
	}
	if undoing := t.undoFiles(ctx); undoing != nil {
		return indeterminate(unclassed{errors.Join(err, undoing)})
	}
	return err
}

// stageFiles makes the directories that are missing, and puts the new files and copies of the old ones
// beside those that are there.
func (t *transaction) stageFiles(ctx context.Context) error {
	if err := t.makeDirs(); err != nil {
		return err
	}
	for i, c := range t.j.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.stageFile(c, t.content[i]); err != nil {
			return fmt.Errorf("file %s: %w", quoted(c.fullPath()), err)
		}
	}
	return t.syncDirs()
}

func (t *transaction) stageFile(c change, content []byte) error {
	old, data, err := t.inspectFile(c.Dir, c.Name)
	if err == nil && old != c.Old {
		err = errChanged
	}
	if err == nil && old.Present {
		err = t.writeTemp(c.Dir, t.j.tempFile(c, oldEnd), data, old)
	}
	if err == nil && c.New.Present {
		err = t.writeTemp(c.Dir, t.j.tempFile(c, newEnd), content, c.New)
	}
	return err
}

var errChanged = errors.New("another program changed it")

func (c change) fullPath() string { return filepath.Join(c.Dir, c.Name) }

func (j *journal) tempFile(c change, end string) string { return tempName(j.Tag, c.Name, end) }

// writeTemp writes a durable file with all that it is to have. Its name is not durable yet.
func (t *transaction) writeTemp(dir, temp string, data []byte, want fileState) error {
	d := t.dirs[dir]
	if err := t.sys.unlink(d, temp); err != nil && !isGone(err) {
		return err
	}
	fd, err := t.sys.openAt(d, temp, openNew)
	if err != nil {
		return err
	}
	info, err := t.sys.stat(fd)
	if err == nil && (info.uid != want.UID || info.gid != want.GID) {
		err = t.sys.chown(fd, want.UID, want.GID)
	}
	if err == nil {
		err = t.sys.chmod(fd, want.Mode)
	}
	if err == nil && len(data) > 0 {
		err = writeAll(t.sys, fd, [][]byte{data}, 0)
	}
	if err == nil {
		err = t.sys.sync(fd)
	}
	if closing := t.sys.close(fd); err == nil {
		err = closing
	}
	return err
}

// makeDirs makes what is missing. Each directory is durable before the next one is made.
func (t *transaction) makeDirs() error {
	for _, dir := range t.j.Made {
		if err := t.makeDir(dir); err != nil {
			return fmt.Errorf("directory %q: %w", dir, err)
		}
	}
	for dir := range t.dirs {
		if err := t.openDir(dir); err != nil {
			return err
		}
		if t.dirs[dir] < 0 && slices.Contains(t.j.Made, dir) {
			return fmt.Errorf("directory %q: %w", dir, fs.ErrNotExist)
		}
	}
	return nil
}

func (t *transaction) makeDir(dir string) error {
	parent, err := t.sys.openPath(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer t.sys.close(parent)
	name := filepath.Base(dir)
	err = t.sys.mkdir(parent, name, permMaking)
	if err == nil {
		err = finishDir(t.sys, parent, name)
	}
	if err != nil && !isTaken(err) {
		return err
	}
	return settleDir(t.sys, parent, name)
}

// swapFiles gives every new file its name. It compares before each rename: another program may have
// written since.
func (t *transaction) swapFiles(ctx context.Context) error {
	for _, c := range t.j.Files {
		err := ctx.Err()
		if err == nil {
			err = t.swapFile(c)
		}
		if err != nil {
			return fmt.Errorf("file %s: %w", quoted(c.fullPath()), err)
		}
	}
	return t.syncDirs()
}

func (t *transaction) swapFile(c change) error {
	now, _, err := t.inspectFile(c.Dir, c.Name)
	switch {
	case err != nil:
		return err
	case now != c.Old:
		return errChanged
	case c.New.Present:
		return t.sys.replace(t.dirs[c.Dir], t.j.tempFile(c, newEnd), c.Name)
	case c.Old.Present:
		return t.sys.unlink(t.dirs[c.Dir], c.Name)
	}
	return nil
}

// syncDirs makes the names in all directories durable, as far as it can.
func (t *transaction) syncDirs() error {
	var errs []error
	for dir, fd := range t.dirs {
		if fd < 0 {
			continue
		}
		if err := t.sys.sync(fd); err != nil {
			errs = append(errs, fmt.Errorf("directory %q: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

func (t *transaction) markApplied(ctx context.Context) error {
	t.j.Phase = phaseApplied
	return t.j.putJournal(ctx, t.store)
}

// removeTemps removes the temporary files. What stays is removed by the next call.
func (t *transaction) removeTemps() {
	for _, c := range t.j.Files {
		if d := t.dirs[c.Dir]; d >= 0 {
			_ = t.sys.unlink(d, t.j.tempFile(c, newEnd))
			_ = t.sys.unlink(d, t.j.tempFile(c, oldEnd))
		}
	}
}
