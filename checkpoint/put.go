// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// tries is how many new files are written after errors of the disk, before Put gives up.
const tries = 3

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
	if int64(len(payload)) > s.o.MaxPayload {
		return fmt.Errorf("%w: %d bytes, may have %d", ErrTooLarge, len(payload), s.o.MaxPayload)
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.endCall()
	st, err := s.enter(ctx, n)
	if err != nil {
		return err
	}
	if err := st.take(ctx); err != nil {
		return err
	}
	defer st.release()
	return s.put(ctx, st, payload)
}

func (s *Store) put(ctx context.Context, st *stream, payload []byte) error {
	if err := s.dir.checkReady(st.in); err != nil {
		return err
	}
	newest, err := s.books.findStanding(st)
	if err != nil {
		return err
	}
	hint := hintOf(payload)
	if newest.verified && newest.hint == hint && newest.digest == digestOf(payload) {
		return nil
	}
	return s.commit(ctx, st, payload, hint)
}

// enter returns the stream of a name, and makes its directory where that is not there.
func (s *Store) enter(ctx context.Context, n name) (*stream, error) {
	f, err := s.known(ctx, n.dir)
	if f == nil && err == nil {
		f, err = s.enterFolder(ctx, n.dir)
	}
	if err != nil {
		return nil, err
	}
	return s.books.enterStream(f, n.base), nil
}

// enterFolder makes a directory, unless another call just did.
func (s *Store) enterFolder(ctx context.Context, dir string) (*folder, error) {
	if err := s.takeGrow(ctx); err != nil {
		return nil, err
	}
	defer s.releaseGrow()
	if f := s.books.findFolder(dir); f != nil {
		return f, f.err
	}
	f, err := s.makeFolder(dir)
	if err != nil {
		return nil, err
	}
	s.books.addFolder(f)
	return f, nil
}

// makeFolder makes a directory of streams. Its entry is durable before it holds a record.
func (s *Store) makeFolder(dir string) (*folder, error) {
	if err := s.dir.checkReady(s.books.root); err != nil {
		return nil, err
	}
	fd, err := s.dir.makeDir(s.books.root.fd, dir)
	if isFull(err) && s.space.makeRoom() {
		fd, err = s.dir.makeDir(s.books.root.fd, dir)
	}
	if err != nil {
		return nil, err
	}
	info, err := s.dir.sys.stat(fd)
	f := newFolder(dir, fd, info.id, s.dir.sys)
	if err == nil {
		err = f.open()
	}
	if err == nil {
		if err = s.books.root.barrier.wait(); err != nil {
			_ = s.dir.sys.rmdir(s.books.root.fd, dir) // the next try has to make it anew: an fsync that failed is not repeated
		}
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// commit writes the next generation. The stream's turn is the caller's.
func (s *Store) commit(ctx context.Context, st *stream, payload []byte, hint uint32) error {
	gen := s.books.nextGeneration(st)
	if gen > maxGeneration {
		return errors.New("no generation is left")
	}
	d := &st.draft
	d.begin(header{stream: st.name.full, generation: gen, writer: s.o.Writer, machine: s.load.machine}, payload)
	defer d.forget()
	if err := s.space.reserveBytes(d.size()); err != nil {
		return err
	}
	temp, err := s.writeFile(ctx, st)
	if err != nil && isFull(err) && s.space.makeRoom() {
		temp, err = s.writeFile(ctx, st)
	}
	if err != nil {
		s.books.bytes.refundBytes(d.size())
		return err
	}
	g := generation{gen: gen, size: d.size(), digest: d.header.payload, hint: hint, verified: true}
	return s.publish(ctx, st, temp, g)
}

// writeFile writes a temporary file and makes its content durable. After an error of the disk it starts again with a
// new one: the system reports such an error once, and a second fsync of the same file would prove nothing.
func (s *Store) writeFile(ctx context.Context, st *stream) (temp string, err error) {
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		temp = tempPrefix + strconv.FormatUint(s.temps.Add(1), 10)
		err = s.writeOnce(st, temp)
		if err == nil {
			return temp, nil
		}
		if !isTaken(err) {
			_ = s.dir.sys.unlink(st.in.fd, temp) // or the next Open does it
		}
		if try == tries || !isMedia(err) && !isTaken(err) {
			return "", err
		}
		if stop := s.pause(ctx, try); stop != nil {
			return "", fmt.Errorf("%w, after %w", stop, err)
		}
	}
}

func (s *Store) writeOnce(st *stream, temp string) error {
	fd, err := s.dir.sys.openAt(st.in.fd, temp, openNew)
	if err != nil {
		return err
	}
	err = s.dir.sys.chmod(fd, permFile) // before the first byte, whatever the umask
	if err == nil {
		err = st.draft.write(s.dir.sys, fd)
	}
	if err == nil {
		err = s.dir.sys.sync(fd)
	}
	if closing := s.dir.sys.close(fd); err == nil {
		err = closing // some file systems say only now that there was no room
	}
	return err
}

// publish gives a durable file its number, which is the commit, and makes the number durable.
func (s *Store) publish(ctx context.Context, st *stream, temp string, g generation) error {
	file := recordFile(st.name.base, g.gen)
	err := ctx.Err()
	if err == nil {
		if err = s.dir.sys.rename(st.in.fd, temp, file); isMedia(err) {
			return s.unconfirmed(st, temp, g, err)
		}
	}
	if err != nil {
		_ = s.dir.sys.unlink(st.in.fd, temp)
		s.books.bytes.refundBytes(g.size)
		if isTaken(err) {
			s.books.burnNumber(st, g.gen)
		}
		return err
	}
	if err := st.in.barrier.wait(); err != nil {
		return s.unconfirmed(st, temp, g, err)
	}
	s.acknowledge(st, g)
	return nil
}

// acknowledge enters a durable generation, then drops what it made surplus. The next fsync of the directory covers
// that.
func (s *Store) acknowledge(st *stream, g generation) {
	s.books.mu.Lock()
	st.add(g)
	unmark := st.marked
	st.unsure, st.marked = false, false
	s.books.mu.Unlock()
	if unmark {
		_ = s.dir.sys.unlink(st.in.fd, unsureFile(st.name.base)) // one left behind costs one write at the next Open
	}
	s.space.trimStream(st, s.o.Generations)
	s.space.ballast.restoreBallast()
}

// unconfirmed enters a generation that may or may not be there after a crash. A mark in the directory tells the next
// Open, as what it reads from the cache would look good. The mark needs no fsync: it is lost only together with the
// cache.
func (s *Store) unconfirmed(st *stream, temp string, g generation, cause error) error {
	_, err := s.dir.sys.statAt(st.in.fd, recordFile(st.name.base, g.gen))
	gone := isGone(err)
	g.verified, g.doubtful = false, true
	s.books.mu.Lock()
	if gone {
		s.books.bytes.refundBytes(g.size)
	} else {
		st.add(g) // where the system does not say, reading will tell
	}
	st.top = max(st.top, g.gen)
	st.unsure = true
	marked := st.marked
	s.books.mu.Unlock()
	if gone {
		_ = s.dir.sys.unlink(st.in.fd, temp)
	}
	if !marked {
		s.mark(st)
	}
	return indeterminate(fmt.Errorf("generation %d: %w", g.gen, cause))
}

func (s *Store) mark(st *stream) {
	fd, err := s.dir.sys.openAt(st.in.fd, unsureFile(st.name.base), openNew)
	if err != nil {
		return
	}
	s.dir.sys.close(fd)
	s.books.mu.Lock()
	st.marked = true
	s.books.mu.Unlock()
}
