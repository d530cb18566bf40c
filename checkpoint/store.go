// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
)

// Store keeps the records of one directory. [Open] makes it; Close ends it and gives up the lock.
type Store struct {
	maxPayload int64 // bytes that Put takes
	calls      gate  // until Close

	dir   *directory // the disk
	lock  storeLock
	books *books // what is known about it
	tree  *tree  // finds and makes streams

	reader  *recordReader // Read
	writer  *recordWriter // Put
	remover *remover      // Delete
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

// Put makes payload the newest record of a stream. When it returned nil, the record is durable. A payload equal to the
// newest acknowledged one is not written again and costs no fsync. Put does not keep payload; a payload of 0 bytes is
// one like others.
//
// Errors match [ErrNotWritten] or [ErrIndeterminate] and, where there is one of these causes, [ErrFull], [ErrReadOnly],
// [ErrTooLarge], [ErrTooNew], [ErrMoved], [ErrUntrusted], [ErrName], [fs.ErrClosed], or the context's. The context is
// looked at before each step up to the rename; a system call under way is not interrupted.
func (s *Store) Put(ctx context.Context, stream string, payload []byte) error {
	if err := s.putName(ctx, stream, payload); err != nil {
		return fmt.Errorf("putting %s: %w", quoted(stream), notWritten(err))
	}
	return nil
}

func (s *Store) putName(ctx context.Context, stream string, payload []byte) error {
	if err := s.isOpened(); err != nil {
		return err
	}
	n, err := parseName(stream)
	if err != nil {
		return err
	}
	if int64(len(payload)) > s.maxPayload {
		return fmt.Errorf("%w: %d bytes, may have %d", ErrTooLarge, len(payload), s.maxPayload)
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.endCall()
	st, err := s.tree.enterStream(ctx, n)
	if err != nil {
		return err
	}
	if err := st.take(ctx); err != nil {
		return err
	}
	defer st.release()
	return s.writer.putRecord(ctx, st, payload)
}

// Delete removes a stream and what was set aside of it. When it returned nil, the stream is gone for good; one that is not
// there is no error. At no instant does a crash bring back an older record than the newest. A later Put of the same name
// goes on with higher generations.
//
// Errors are those of [Store.Put]. A stream that a newer version of this package wrote is refused with [ErrTooNew]. Delete
// needs no room on the disk.
func (s *Store) Delete(ctx context.Context, stream string) error {
	if err := s.deleteName(ctx, stream); err != nil {
		return fmt.Errorf("deleting %s: %w", quoted(stream), notWritten(err))
	}
	return nil
}

func (s *Store) deleteName(ctx context.Context, stream string) error {
	n, err := parseName(stream)
	if err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.endCall()
	st, err := s.tree.findStream(ctx, n)
	if err != nil || st == nil {
		return err
	}
	if err := st.take(ctx); err != nil {
		return err
	}
	defer st.release()
	return s.remover.removeStream(st)
}

// Get returns the payload of the newest generation of a stream that verifies, read from the disk. It changes nothing but the
// names of damaged files.
//
// Errors match [fs.ErrNotExist] where the stream has no record (and [ErrForeign], too, where that is so because what is there
// belongs to another machine), [ErrCorrupt] where it has some and none verifies (the error is a [CorruptError]), [ErrTooNew]
// where the newest is of a format that this version does not know, [ErrName], [fs.ErrClosed], or the context's.
func (s *Store) Get(ctx context.Context, stream string) ([]byte, error) {
	rec, err := s.Read(ctx, stream)
	return rec.Payload, err
}

// Read is Get with all that is known about the record.
func (s *Store) Read(ctx context.Context, stream string) (Record, error) {
	rec, err := s.readName(ctx, stream)
	if err != nil {
		return Record{}, fmt.Errorf("reading %s: %w", quoted(stream), err)
	}
	return rec, nil
}

func (s *Store) readName(ctx context.Context, stream string) (Record, error) {
	n, err := parseName(stream)
	if err != nil {
		return Record{}, err
	}
	if err := s.begin(ctx); err != nil {
		return Record{}, err
	}
	defer s.calls.endCall()
	st, err := s.tree.findStream(ctx, n)
	if err != nil {
		return Record{}, err
	}
	if st == nil {
		return Record{}, fs.ErrNotExist
	}
	return s.reader.readNewest(ctx, st)
}

// List returns the names of the streams in a directory, sorted and in full ("checkpoints/a"); "" is the store's own
// directory. Streams whose records are all damaged, or of a newer format, are in the list. A directory that is not there
// has none. Errors match [ErrName], [fs.ErrClosed], or the context's.
func (s *Store) List(ctx context.Context, dir string) ([]string, error) {
	names, err := s.listDir(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", quoted(dir), err)
	}
	return names, nil
}

func (s *Store) listDir(ctx context.Context, dir string) ([]string, error) {
	if dir != "" {
		if err := checkDir(dir); err != nil {
			return nil, err
		}
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.calls.endCall()
	f, err := s.tree.findFolder(ctx, dir)
	if f == nil || err != nil {
		return nil, err
	}
	return s.books.listPresent(f), nil
}

// isOpened refuses a nil Store and the zero value, which have no directory.
func (s *Store) isOpened() error {
	if s == nil || s.books == nil {
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

// admitCall returns an error when the gate is closed; otherwise endCall has to follow.
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
