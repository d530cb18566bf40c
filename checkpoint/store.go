// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"
)

// Store keeps the records of one directory. [Open] makes it; Close ends it and gives up the lock.
type Store struct {
	sys  fsys
	o    Options
	path string // absolute, as given
	load loader
	kind storage
	lock int // descriptor of the lock file
	root *folder

	pause func(ctx context.Context, try int) error // between two tries after an error of the disk
	temps atomic.Uint64                            // makes names of temporary files
	grow  chan struct{}                            // one directory is made or taken in at a time
	ops   sync.WaitGroup                           // calls under way, which Close waits for

	unsure error // what the fsync of the directory above said at Open; nil = it is durable

	mu      sync.Mutex // guards what follows, and what folders and streams say; never held across a system call
	closed  bool
	folders map[string]*folder // by name, without the store's own
	used    int64              // bytes in all files, and those that are about to be written
	ballast bool               // the file that is given back when the disk is full is there
}

// Durable reports whether the directory lies on a file system on which an acknowledged write was shown to survive a power
// cut: ext4, xfs or btrfs. It is false on tmpfs, overlayfs and all others; they work, as far as they can.
func (s *Store) Durable() bool { return s.kind == storageDurable }

// Close waits for the calls under way, closes the files and gives up the lock. Nothing is written: what was acknowledged
// is durable already. Every later call returns [fs.ErrClosed]; a second Close returns nil.
func (s *Store) Close() error {
	if err := s.isOpened(); err != nil {
		return err
	}
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return nil
	}
	s.ops.Wait()
	return s.closeFiles()
}

func (s *Store) closeFiles() error {
	for _, f := range s.folders {
		f.close()
	}
	if s.root != nil {
		s.root.close()
	}
	if s.lock < 0 {
		return nil
	}
	err := s.sys.unlock(s.lock)
	s.sys.close(s.lock)
	if err != nil {
		return fmt.Errorf("closing the store in %q: %w", s.path, err)
	}
	return nil
}

// isOpened refuses a nil Store and the zero value, which have no directory.
func (s *Store) isOpened() error {
	if s == nil || s.grow == nil {
		return ErrNotOpen
	}
	return nil
}

// begin admits a call; s.ops.Done ends it.
func (s *Store) begin(ctx context.Context) error {
	if err := s.isOpened(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fs.ErrClosed
	}
	s.ops.Add(1)
	return nil
}

// lookup returns the stream of a name where it is known, and nil otherwise.
func (s *Store) lookup(ctx context.Context, n name) (*stream, error) {
	f, err := s.known(ctx, n.dir)
	if f == nil || err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.streams[n.base], nil
}

// known returns a directory of the store, nil where it is not there. One that could not be taken in is tried again.
func (s *Store) known(ctx context.Context, dir string) (*folder, error) {
	f := s.folder(dir)
	if f == nil || f.err == nil {
		return f, nil
	}
	if err := s.takeGrow(ctx); err != nil {
		return nil, err
	}
	defer s.releaseGrow()
	if f = s.folder(dir); f.err != nil {
		f = s.takeIn(dir)
	}
	return f, f.err
}

func (s *Store) folder(dir string) *folder {
	if dir == "" {
		return s.root
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.folders[dir]
}

func (s *Store) takeGrow(ctx context.Context) error {
	select {
	case s.grow <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) releaseGrow() { <-s.grow }

// ready returns an error where a write would go astray: the directory was moved, or the fsync of its own entry failed. That
// one is not repeated: the system says it once, and a second success would prove nothing.
func (s *Store) ready(f *folder) error {
	if err := s.unmoved(f); err != nil {
		return err
	}
	if s.unsure != nil {
		return fmt.Errorf("the entry of the store's directory, until it is opened again: %w", s.unsure)
	}
	return nil
}

// unmoved returns ErrMoved where a path no longer leads to the directory that is open.
func (s *Store) unmoved(f *folder) error {
	info, err := s.sys.statPath(s.path)
	if err == nil && info.id != s.root.id {
		return fmt.Errorf("%w: %q", ErrMoved, s.path)
	}
	if err == nil && f.dir != "" {
		info, err = s.sys.statAt(s.root.fd, f.dir)
		if err == nil && info.id != f.id {
			return fmt.Errorf("%w: %q in %q", ErrMoved, f.dir, s.path)
		}
	}
	if isGone(err) || isTrap(err) {
		return fmt.Errorf("%w: %w", ErrMoved, err)
	}
	return err
}

// tell reports damage, once a generation.
func (s *Store) tell(st *stream, gen uint64, f *flaw) Damage {
	d := Damage{Stream: st.name.String(), Generation: gen, Reason: f.reason, Err: f.err}
	s.mu.Lock()
	g := st.find(gen)
	news := g != nil && !g.told
	if g != nil {
		g.told, g.flaw, g.verified = true, f, false
	}
	s.mu.Unlock()
	if news {
		s.o.OnDamage(d)
	}
	return d
}

// pauseFor waits 10 ms, then 100 ms, before the disk is tried again.
func pauseFor(ctx context.Context, try int) error {
	wait := 10 * time.Millisecond
	if try > 1 {
		wait = 100 * time.Millisecond
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
