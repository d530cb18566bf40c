// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/belayproject/belay/internal/option"
)

// Open opens the store in a directory, which it makes, durably, where it is not there (0700, as are its parents). It
// takes the lock, removes what a crash left half done, reads and verifies every record, and sets aside what is
// damaged.
//
// Damage is no error: [Options.OnDamage] hears of it, and the streams that have it say so. Nor is a disk that can not
// be written: Open returns a Store that reads. One whose own entry in its parent could not be synced stays one that
// reads, with [ErrNotWritten] from Put and Delete, until it is opened again. Errors match [ErrLocked] (the text names
// the process), [ErrUntrusted] (a parent that everyone may write without the sticky bit, a directory of someone else,
// or one that is open to others and holds other things), or [errors.ErrUnsupported] (a network file system, or not
// Linux).
func Open(dir string, o Options) (*Store, error) {
	return openOn(hostFS(), dir, o)
}

// absolutePath returns the path of a store's directory, which must be named.
func absolutePath(call, dir string) (string, error) {
	check := option.For(call, nil)
	check.Require("dir", dir, "the directory of the store")
	if err := check.Err(); err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

func openOn(sys fsys, dir string, o Options) (*Store, error) {
	s, err := newStore(sys, dir, o)
	if err == nil {
		err = s.start()
	}
	if err != nil {
		if s != nil {
			err = errors.Join(err, s.closeFiles())
		}
		return nil, fmt.Errorf("opening the store in %q: %w", dir, err)
	}
	return s, nil
}

func newStore(sys fsys, dir string, o Options) (*Store, error) {
	o, err := o.complete()
	if sys == nil {
		err = errNoHost()
	}
	if err != nil {
		return nil, err
	}
	path, err := absolutePath("checkpoint.Open", dir)
	if err != nil {
		return nil, err
	}
	load := newLoader(sys, o)
	d := &directory{sys: sys, path: path, uid: load.uid, root: newFolder("", -1, fileID{}, sys)}
	b := &books{bytes: account{limit: o.MaxStore}, root: d.root, folders: map[string]*folder{}}
	room := &space{dir: d, books: b, ballast: ballast{dir: d, bytes: &b.bytes, size: o.Ballast}}
	kept := &evidence{dir: d, books: b, report: o.OnDamage}
	reader := &recordReader{load: load, books: b, evidence: kept}
	writer := &recordWriter{
		dir: d, books: b, space: room, author: o.Writer, machine: load.machine, keep: o.Generations, pause: pauseFor,
	}
	all := &recovery{dir: d, books: b, evidence: kept, space: room, reader: reader, writer: writer}
	return &Store{
		maxPayload: o.MaxPayload,
		dir:        d,
		lock:       storeLock{dir: d, fd: -1},
		books:      b,
		tree:       &tree{dir: d, books: b, space: room, recovery: all, turn: make(chan struct{}, 1)},
		reader:     reader,
		writer:     writer,
		remover:    &remover{dir: d, books: b},
	}, nil
}

// errNoHost refuses: the promises were tested on Linux only, and a rename and an fsync do not mean the same
// everywhere.
func errNoHost() error {
	return fmt.Errorf("a store on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func newLoader(sys fsys, o Options) loader {
	return loader{sys: sys, uid: uint32(os.Geteuid()), machine: o.machine(), limit: o.MaxStore}
}

func (s *Store) start() error {
	if err := s.dir.openRoot(); err != nil {
		return err
	}
	if err := s.lock.takeLock(); err != nil {
		return err
	}
	return s.tree.recovery.recoverStore()
}
