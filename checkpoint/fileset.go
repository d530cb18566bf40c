// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/belayproject/belay/internal/backoff"
)

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
