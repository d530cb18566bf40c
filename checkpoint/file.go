// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/durable"
	"github.com/belayproject/belay/internal/option"
)

// WriteFile makes data the content of the file at path with a mode, as [os.WriteFile] does, and as
// a whole: when it returned nil, the file survives any later power cut; at any other time a reader,
// also after a crash, sees the old content or the new content. It is for one file in a format of
// others. Files that must agree need a [FileSet]; records of a program's own belong in a [Store].
//
// Every error matches exactly one of [ErrNotWritten] and [ErrIndeterminate] and, if there is one of
// these causes, [ErrFull], [ErrReadOnly], [fs.ErrNotExist] (a directory is missing: WriteFile makes
// none), or [fs.ErrPermission].
//
// The mode has permission bits only, and the umask does not count. The file belongs to this
// process. A link at path is replaced and not followed; hard links, extended attributes and times
// of the old file are not kept. Any number of goroutines and processes may write one file: the last
// one counts. A call waits for other writers up to 30 seconds; the error then names the temporary
// file that they hold. The cost is two fsyncs, also for equal content: what an earlier fsync failed
// to confirm is never confirmed by reading.
//
// The temporary file is beside the file: a killed process leaves it there, and the next call removes
// it. Its name begins with a dot and ends in ".tmp". A program that reads every file of a directory,
// as CRI-O does in crio.conf.d, reads it, too: see [FileSet].
//
// WriteFile does what it can on systems other than Linux. The promise holds on ext4, xfs and btrfs.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	check := option.For("checkpoint.WriteFile", nil)
	check.Require("path", path, "the file to write")
	err := check.Err()
	if err == nil && perm&^fs.ModePerm != 0 {
		err = errMode
	}
	if err == nil {
		err = durable.ReplaceFile(durable.OS{}, path, data, perm)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, durable.ErrUnconfirmed):
		return fmt.Errorf("writing %q: %w", path, indeterminate(err))
	}
	return fmt.Errorf("writing %q: %w", path, notWritten(err))
}

var errMode = errors.New("the mode must have permission bits only")

// ReadFile reads a state file that another program, or an earlier version of this one, wrote
// without care: a crash may have left it empty, cut short, or filled with zeros. Such a file is
// damage, and never absence and never an older state.
//
// whole says what a whole file is: it returns an error for content that is not one, such as that of
// a strict decoder. Choose a check that sees a missing end: every start of a YAML document is a
// YAML document. If whole is nil, only an empty file and one that ends in zeros are damage.
//
// Errors match [fs.ErrNotExist], [ErrCorrupt] (the error is a [CorruptError] with one Damage, whose
// Reason is empty, zeroed or content), [ErrTooLarge] (more than 4 MiB), or [ErrUntrusted] (not a
// regular file). With ErrCorrupt, what was read is returned, too, for people to look at. Links are
// followed. ReadFile changes nothing: to move a legacy file into a [Store], put what was read, and
// remove the file when Put returned nil.
func ReadFile(path string, whole func(content []byte) error) ([]byte, error) {
	check := option.For("checkpoint.ReadFile", nil)
	check.Require("path", path, "the file to read")
	var content []byte
	err := check.Err()
	if err == nil {
		content, err = readLegacy(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, err)
	}
	reason, err := judgeLegacy(content, whole)
	if reason == "" {
		return content, nil
	}
	return content, &CorruptError{Stream: path, Damage: []Damage{{Stream: path, Reason: reason, Err: err}}}
}

// judgeLegacy gives the reason why a file is not whole, or none.
func judgeLegacy(content []byte, whole func([]byte) error) (string, error) {
	if len(content) == 0 {
		return reasonEmpty, nil
	}
	var err error
	if whole != nil {
		if err = whole(content); err == nil {
			return "", nil
		}
	}
	switch {
	case content[len(content)-1] == 0:
		return reasonZeroed, err
	case err != nil:
		return reasonContent, err
	}
	return "", nil
}

// legacyTries bounds how often a file is read that changes meanwhile.
const legacyTries = 10

func readLegacy(path string) ([]byte, error) {
	for range legacyTries {
		content, err := readOnce(path)
		if err != nil {
			return nil, err
		}
		again, err := readOnce(path)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(content, again) {
			return content, nil
		}
	}
	return nil, fmt.Errorf("the file changed %d times while it was read", legacyTries)
}

func readOnce(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a regular file", ErrUntrusted)
	}
	content, err := io.ReadAll(io.LimitReader(f, defaultMaxPayload+1))
	if err == nil && len(content) > defaultMaxPayload {
		err = fmt.Errorf("%w: may have %d bytes", ErrTooLarge, defaultMaxPayload)
	}
	return content, err
}

// A FileSet changes several files of others together: the files of a CNI plugin, a drop-in and the
// certificate it names, the config of a runtime. After a kill or a power cut at any instruction all
// of them are new, or all of them are as they were.
//
//	set, err := checkpoint.OpenFileSet(ctx, "/var/lib/agent/cni", checkpoint.Options{})
//	...
//	err = set.Apply(ctx, []checkpoint.File{
//		{Path: "/etc/cni/net.d/10-net.conflist", Mode: 0o644, Content: conf},
//		{Path: "/var/lib/agent/cni.token", Content: token},
//		{Path: "/etc/cni/net.d/05-old.conf", Absent: true},
//	})
//
// # What is promised
//
//   - Whole: when [FileSet.Apply] returned nil, every file is as the caller asked, and survives any
//     later power cut.
//   - Undone: when Apply returned an error that matches [ErrNotWritten], every file is as it was
//     before. When the process was killed, or the error matches [ErrIndeterminate], the next Apply
//     or [OpenFileSet] makes it so, or finds the set whole.
//   - Each file is replaced by one rename: a reader of one file sees the old content or the new
//     content, never a part.
//   - A later change of another program is never undone: recovery restores a file only where it is
//     exactly what Apply wrote. It leaves any other file alone, and reports it to
//     [Options.OnDamage].
//
// # What is not promised
//
//   - Between the first rename and the last one, a reader of several files sees new files beside
//     old ones.
//   - Nothing changes until recovery runs: after a power cut, call OpenFileSet before the program
//     that reads the files starts.
//   - While Apply runs, and after a kill until recovery, files such as ".NAME.belay-HASH.new" and
//     ".NAME.belay-HASH.old" are beside the files. Readers that select by the dot or the end of a
//     name skip them: the kubelet (static pods, --config-dir), CNI, CDI, systemd, and containerd
//     where its imports end in "*.toml". CRI-O reads every file below crio.conf.d, these, too:
//     stop it while Apply runs, and run recovery before it starts (Before=crio.service in a unit).
//   - A change of another program in the instant between the last comparison and the rename is
//     lost.
//   - Hard links, extended attributes, ACLs, security labels and times of a replaced file are not
//     kept, nor are they restored.
//   - Directories that Apply made stay when it is undone. One that was there keeps its mode.
//   - Where recovery can not open a directory, or finds neither a file nor a copy of it, as where a
//     file system is not mounted yet, it restores the other files and returns [ErrIndeterminate]
//     with the path. So does each Apply, until the directory or the file is there again. The way out
//     for a file that is lost, such as one in /run after a reboot: put any file in its place, or
//     remove the directory of the journal, and apply the set again.
//   - If the journal itself is damaged, no file is touched: OnDamage hears of it, and the next
//     Apply makes the set whole.
//
// # Concurrency
//
// A FileSet may be used by several goroutines and several processes. Each call takes the lock of
// the journal for its own time and waits for it until the context ends. Waiting calls have no order:
// one that competes with others that call in a loop may wait long, so give the context a deadline.
//
// Two sets with different directories do not know each other: if both change one file at the same
// time, one of them fails and is undone, or the later one counts.
type FileSet struct {
	sys  fsys
	o    Options
	dir  string                 // of the journal
	open func() (*Store, error) // opens the journal, and so takes its lock
}

// A File is one file of a [FileSet] as it is to be. A set has no file twice.
type File struct {
	// Path is absolute and clean. Links above the file are followed, and the file itself must not
	// be one. Directories that are not there are made, with mode 0755 and the setgid bit of the one
	// above.
	Path string
	// Mode has permission bits only; 0 = 0600. The umask does not count.
	Mode fs.FileMode
	// Owner is the user and the group by number, "0:0", as chown takes them; "" = those of this
	// process. Without the right to give files away, any other owner is an error.
	Owner string
	// Content is up to Options.MaxPayload bytes.
	Content []byte
	// Absent says that there is to be no file. Mode, Owner and Content are empty then.
	Absent bool
}

// OpenFileSet returns the set whose journal is in dir, after recovery: if an Apply was cut off, its
// files are restored. The directory is made if it is missing. It belongs to one set, is of the same
// kind as that of [Open], and is not one of a Store of the caller. Of the options, MaxPayload
// bounds a file, the old one and the new one.
//
// If recovery does not succeed, the error matches [ErrIndeterminate], and a later call tries again.
// Other errors are those of Open and, if the context ended first, its own.
func OpenFileSet(ctx context.Context, dir string, o Options) (*FileSet, error) {
	return openFileSetOn(ctx, hostFS(), dir, o, openOn)
}

type opener func(sys fsys, dir string, o Options) (*Store, error)

func openFileSetOn(ctx context.Context, sys fsys, dir string, o Options, open opener) (*FileSet, error) {
	path, err := absolutePath("checkpoint.OpenFileSet", dir)
	if err == nil {
		o, err = o.complete()
	}
	if sys == nil {
		err = errNoHost()
	}
	if err != nil {
		return nil, fmt.Errorf("opening the files of %q: %w", dir, err)
	}
	journal := o
	journal.MaxPayload, journal.MaxStore = defaultMaxPayload, defaultMaxStore
	s := &FileSet{sys: sys, o: o, dir: path}
	s.open = func() (*Store, error) { return open(sys, path, journal) }
	err = s.withJournal(ctx, func(store *Store) error { return s.recoverFiles(ctx, store) })
	if err != nil {
		return nil, fmt.Errorf("opening the files of %q: %w", dir, err)
	}
	return s, nil
}

// Apply makes every file as it is given, in one transaction, and writes those that are equal, too.
// The promises of [FileSet] hold. Content is not kept. A set without files is nothing to do.
//
// Every error matches exactly one of [ErrNotWritten] and [ErrIndeterminate] and, if there is one of
// these causes, [ErrFull], [ErrReadOnly], [ErrTooLarge], [ErrUntrusted] (a link, a directory, or a
// directory above the file that every user may write), [fs.ErrPermission], [ErrNotOpen], or the
// context's. The context is looked at before each step up to the last rename.
//
// Apply costs two fsyncs for the journal before, two after, and one for each new file, each old
// one, and, twice, each directory.
func (s *FileSet) Apply(ctx context.Context, files []File) error {
	if s == nil || s.open == nil {
		return notWritten(ErrNotOpen)
	}
	if err := ctx.Err(); err != nil {
		return notWritten(err)
	}
	if err := checkFiles(files, s.o.MaxPayload); err != nil || len(files) == 0 {
		if err != nil {
			err = notWritten(err)
		}
		return err
	}
	err := s.withJournal(ctx, func(store *Store) error {
		if err := s.recoverFiles(ctx, store); err != nil {
			return err
		}
		return s.applyFiles(ctx, store, files)
	})
	if err != nil {
		return fmt.Errorf("applying %d files: %w", len(files), notWritten(err))
	}
	return nil
}

func (s *FileSet) applyFiles(ctx context.Context, store *Store, files []File) error {
	targets, err := s.locateFiles(files)
	if err != nil {
		return err
	}
	t := s.newTransaction(store)
	defer t.closeDirs()
	if err := t.inspectFiles(targets); err != nil {
		return err
	}
	return t.runPhases(ctx)
}

// withJournal runs a call with the journal open, which no other process has then.
func (s *FileSet) withJournal(ctx context.Context, call func(*Store) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	store, err := openWaiting(ctx, s.open)
	if err != nil {
		return err
	}
	err = call(store)
	if closing := store.Close(); err == nil && closing != nil {
		return indeterminate(closing)
	}
	return err
}

// openWaiting opens a store as soon as no other process has it open.
func openWaiting(ctx context.Context, open func() (*Store, error)) (*Store, error) {
	for try := 0; ; try++ {
		store, err := open()
		if !errors.Is(err, ErrLocked) {
			return store, err
		}
		if stop := waitForLock(ctx, try); stop != nil {
			return nil, fmt.Errorf("%w: %w", stop, err)
		}
	}
}

// waitForLock waits between two tries to take a lock.
func waitForLock(ctx context.Context, try int) error {
	if !backoff.Sleep(ctx, pauseAfter(try)) {
		return ctx.Err()
	}
	return nil
}

// pauseAfter gives the pause after a try that found a lock taken. It is drawn: processes that wait
// do not try in step, and no call of another process hides the lock from them each time.
func pauseAfter(try int) time.Duration {
	return backoff.Jitter(backoff.After(try, time.Millisecond, 64*time.Millisecond), 0.1, 1, nil)
}

// a target is a file of a set, and where it really lies.
type target struct {
	File
	dir  string // without links; may be missing
	name string
}

func (t target) realPath() string { return filepath.Join(t.dir, t.name) }
