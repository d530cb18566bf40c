// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// recoverFiles restores the files of an Apply that was cut off, and removes what one left. It may be cut
// off itself and run again.
func (s *FileSet) recoverFiles(ctx context.Context, store *Store) error {
	j, err := readJournal(ctx, store)
	if j == nil || err != nil {
		return err
	}
	t := s.newTransaction(store)
	defer t.closeDirs()
	t.j, t.cutOff = *j, true
	if j.Phase == phaseApplying {
		if err := t.undoFiles(ctx); err != nil {
			return indeterminate(unclassed{err})
		}
		return nil
	}
	for _, c := range j.Files {
		_ = t.openDir(c.Dir) // for the temporary files only
	}
	t.removeTemps()
	_ = t.syncDirs()
	return nil
}

// undoFiles makes every file what it was, durably, and says so in the journal. A file that is neither
// the old one nor the new one was written by another program, and stays. What can not be restored
// keeps no other file from it.
func (t *transaction) undoFiles(ctx context.Context) error {
	errs := []error{t.settleDirs()}
	for _, c := range slices.Backward(t.j.Files) {
		if err := t.undoFile(c); err != nil {
			errs = append(errs, fmt.Errorf("restoring file %s: %w", quoted(c.fullPath()), err))
		}
	}
	if err := t.syncDirs(); err != nil {
		// What the directories show is not what is on the disk, and a second fsync would not say so: the next try has to
		// know.
		t.j.Phase, t.j.Doubtful = phaseApplying, true
		return errors.Join(append(errs, err, t.j.putJournal(ctx, t.store))...)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	t.j.Phase, t.j.Doubtful = phaseUndone, false
	if err := t.j.putJournal(ctx, t.store); err != nil {
		return err
	}
	t.removeTemps()
	return nil
}

// settleDirs makes durable what a process was killed in the middle of making.
func (t *transaction) settleDirs() error {
	var errs []error
	for _, dir := range t.j.Made {
		parent, err := t.sys.openPath(filepath.Dir(dir))
		if isGone(err) {
			continue
		}
		if err == nil {
			err = settleDir(t.sys, parent, filepath.Base(dir))
			t.sys.close(parent)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("directory %q: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// settleDir makes the entry of a directory durable. One that an Apply was killed in the middle of
// making gets its mode; one that is complete, or of another program, keeps its own. An fsync that
// failed is not repeated: the directory has to be made anew.
func settleDir(sys fsys, parent int, name string) error {
	info, err := sys.statAt(parent, name)
	if isGone(err) {
		return nil
	}
	if err == nil && info.dir && info.perm&permBits == permMaking && info.uid == uint32(os.Geteuid()) {
		err = finishDir(sys, parent, name)
	}
	if err == nil {
		if err = sys.sync(parent); err != nil {
			_ = sys.rmdir(parent, name)
		}
	}
	return err
}

// finishDir gives a directory that this package made its mode. The setgid bit is inherited.
func finishDir(sys fsys, parent int, name string) error {
	info, err := sys.statAt(parent, name)
	if err != nil {
		return err
	}
	return sys.chmodAt(parent, name, permMade|info.perm&permSetgid)
}

const (
	// permMade is the mode of a directory that Apply makes: other programs read the files.
	permMade = 0o755
	// permMaking is its mode up to then. No other program makes such a directory, so recovery
	// can tell it from others.
	permMaking = 0o100
	permBits   = 0o777
	permSetgid = 0o2000
)

func (t *transaction) undoFile(c change) error {
	if err := t.openDir(c.Dir); err != nil {
		return err
	}
	now, data, err := t.inspectFile(c.Dir, c.Name)
	if err == nil && !now.Present {
		err = t.checkAbsence(c)
	}
	switch {
	case errors.Is(err, ErrUntrusted) || errors.Is(err, ErrTooLarge):
		t.reportChanged(c, err)
		return nil
	case err != nil:
		return err
	case now == c.Old && t.j.Doubtful:
		return t.renewName(c, data)
	case now == c.Old:
		return nil
	case now != c.New:
		t.reportChanged(c, errChanged)
		return nil
	case !c.Old.Present:
		return t.sys.unlink(t.dirs[c.Dir], c.Name)
	}
	return t.restoreFile(c)
}

var (
	errNoCopy = errors.New("the copy of the old file is gone")
	errHidden = errors.New("neither it nor a copy of it is there: its file system may not be mounted")
)

// checkAbsence returns an error for a file whose absence says nothing: its directory is not the one
// that Apply wrote to. That is certain where a directory has another inode, or where there was an
// old file: then the file, or a copy of it, is there at every step.
func (t *transaction) checkAbsence(c change) error {
	for _, end := range []string{newEnd, oldEnd} {
		if t.dirs[c.Dir] < 0 {
			break
		}
		if _, err := t.sys.statAt(t.dirs[c.Dir], t.j.tempFile(c, end)); !isGone(err) {
			return err
		}
	}
	inode, err := t.findInode(c.Dir)
	switch {
	case err != nil:
		return err
	case c.Old.Present || c.New.Present && c.Inode != 0 && inode != c.Inode:
		return errHidden
	}
	return nil
}

// restoreFile puts the copy of the old file back. It needs no room on the disk.
func (t *transaction) restoreFile(c change) error {
	kept, _, err := t.inspectFile(c.Dir, t.j.tempFile(c, oldEnd))
	if err != nil && !errors.Is(err, ErrUntrusted) && !errors.Is(err, ErrTooLarge) {
		return err
	}
	if kept != c.Old && !t.cutOff {
		return errNoCopy // and the next recovery says so
	}
	if kept != c.Old {
		t.reportChanged(c, errNoCopy)
		return nil
	}
	return t.sys.replace(t.dirs[c.Dir], t.j.tempFile(c, oldEnd), c.Name)
}

// renewName has the name of an old file change once more, so that the next fsync covers it.
func (t *transaction) renewName(c change, data []byte) error {
	d, temp := t.dirs[c.Dir], t.j.tempFile(c, newEnd)
	if d < 0 {
		return nil
	}
	state := c.Old
	if !c.Old.Present {
		state = c.New
	}
	if err := t.writeTemp(c.Dir, temp, data, state); err != nil {
		return err
	}
	err := t.sys.replace(d, temp, c.Name)
	if err == nil && !c.Old.Present {
		err = t.sys.unlink(d, c.Name)
	}
	return err
}

func (t *transaction) reportChanged(c change, err error) {
	t.report(Damage{Stream: c.fullPath(), Reason: reasonChanged, Err: err})
}

// unclassed is an error without its class, for one that gets another class.
type unclassed struct{ err error }

func (e unclassed) Error() string { return e.err.Error() }

func (e unclassed) Is(target error) bool {
	return target != ErrNotWritten && target != ErrIndeterminate && errors.Is(e.err, target)
}

func (e unclassed) As(target any) bool { return errors.As(e.err, target) }
