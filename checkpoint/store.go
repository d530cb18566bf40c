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
	o        Options
	calls    gate
	dir      *directory
	lock     storeLock
	books    *books
	evidence *evidence
	space    *space
	load     loader

	pause func(ctx context.Context, try int) error // between two tries after an error of the disk
	temps atomic.Uint64                            // makes names of temporary files
	grow  chan struct{}                            // one directory is made or taken in at a time
}

// Durable reports whether the directory lies on a file system on which an acknowledged write was shown to survive a power
// cut: ext4, xfs or btrfs. It is false on tmpfs, overlayfs and all others; they work, as far as they can.
func (s *Store) Durable() bool { return s.dir != nil && s.dir.kind == storageDurable }

// Close waits for the calls under way, closes the files and gives up the lock. Nothing is written: what was acknowledged
// is durable already. Every later call returns [fs.ErrClosed]; a second Close returns nil.
func (s *Store) Close() error {
	if err := s.isOpened(); err != nil {
		return err
	}
	if s.calls.closeGate() {
		return nil
	}
	return s.closeFiles()
}

func (s *Store) closeFiles() error {
	for _, f := range s.books.folders {
		f.close()
	}
	s.books.root.close()
	if err := s.lock.releaseLock(); err != nil {
		return fmt.Errorf("closing the store in %q: %w", s.dir.path, err)
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

// begin admits a call; s.calls.endCall ends it.
func (s *Store) begin(ctx context.Context) error {
	if err := s.isOpened(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.calls.admitCall()
}

// gate admits the calls of a Store until it is closed, and knows which are under way.
type gate struct {
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

func (g *gate) admitCall() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fs.ErrClosed
	}
	g.running.Add(1)
	return nil
}

func (g *gate) endCall() { g.running.Done() }

// closeGate admits no more calls, waits for those under way, and reports whether it was closed before.
func (g *gate) closeGate() (was bool) {
	g.mu.Lock()
	was = g.closed
	g.closed = true
	g.mu.Unlock()
	if !was {
		g.running.Wait()
	}
	return was
}

// lookup returns the stream of a name where it is known, and nil otherwise.
func (s *Store) lookup(ctx context.Context, n name) (*stream, error) {
	f, err := s.known(ctx, n.dir)
	if f == nil || err != nil {
		return nil, err
	}
	return s.books.findStream(f, n.base), nil
}

// known returns a directory of the store, nil where it is not there. One that could not be taken in is tried again.
func (s *Store) known(ctx context.Context, dir string) (*folder, error) {
	f := s.books.findFolder(dir)
	if f == nil || f.err == nil {
		return f, nil
	}
	if err := s.takeGrow(ctx); err != nil {
		return nil, err
	}
	defer s.releaseGrow()
	if f = s.books.findFolder(dir); f.err != nil {
		f = s.takeIn(dir)
	}
	return f, f.err
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
