// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import "sync"

// barrier makes the entries of one directory durable. Callers that arrive while an fsync runs share the next one.
type barrier struct {
	sys fsys
	dir int // only opens a new descriptor after a failure

	turn chan struct{} // holds one token for the length of an fsync; guards fd
	fd   int           // never fsynced again after an error, but replaced

	mu   sync.Mutex
	next *flight // who arrives now waits for this one
}

// flight is one fsync to come, and what came of it. Its fields belong to whoever holds the turn.
type flight struct {
	done bool
	err  error
}

// wait returns after an fsync of the directory that began after wait was called.
func (b *barrier) wait() error {
	b.mu.Lock()
	if b.next == nil {
		b.next = &flight{}
	}
	f := b.next
	b.mu.Unlock()

	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	if f.done {
		return f.err
	}
	b.mu.Lock()
	b.next = nil // who arrives from here on may have changed the directory after the fsync below began
	b.mu.Unlock()
	f.done, f.err = true, b.flush()
	return f.err
}

func (b *barrier) flush() error {
	if b.fd < 0 {
		fd, err := b.sys.openAt(b.dir, ".", openDir)
		if err != nil {
			return err
		}
		b.fd = fd
	}
	err := b.sys.sync(b.fd)
	if err != nil {
		b.sys.close(b.fd)
		b.fd = -1
	}
	return err
}

func (b *barrier) close() {
	if b.fd >= 0 {
		b.sys.close(b.fd)
	}
}
