// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
)

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
	st, err := s.lookup(ctx, n)
	if err != nil || st == nil {
		return err
	}
	if err := st.take(ctx); err != nil {
		return err
	}
	defer st.release()
	if err := s.dir.checkReady(st.in); err != nil {
		return err
	}
	return s.remove(st)
}

// removal is what Delete does, in this order: the files in first, an fsync, then last, an fsync.
type removal struct {
	first []string
	last  string // "" = nothing is there
	whole bool   // last verifies
}

// remove takes away everything but the record that reading returns, makes that durable, and then takes that one away.
func (s *Store) remove(st *stream) error {
	r, err := s.planRemoval(st)
	if err != nil {
		return err
	}
	for _, file := range r.first {
		if err := s.dir.sys.unlink(st.in.fd, file); err != nil && !isGone(err) {
			return err
		}
	}
	if len(r.first) > 0 {
		if err := st.in.barrier.wait(); err != nil {
			return err
		}
	}
	floor, err := s.removeLast(st, r)
	if err != nil {
		return err
	}
	unsure := s.books.clearStream(st)
	if r.last == "" && !unsure {
		return nil
	}
	if err := st.in.barrier.wait(); err != nil {
		s.books.vanishStream(st)
		return indeterminate(err)
	}
	s.afterRemoval(st, floor)
	return nil
}

func (s *Store) planRemoval(st *stream) (removal, error) {
	s.books.mu.Lock()
	defer s.books.mu.Unlock()
	var r removal
	for _, g := range st.gens {
		if g.is(reasonTooNew) {
			return r, &Damage{Stream: st.name.String(), Generation: g.gen, Reason: reasonTooNew, Err: g.flaw.err}
		}
		file := recordFile(st.name.base, g.gen)
		if g.flaw == nil && r.last == "" {
			r.last, r.whole = file, true
			continue
		}
		r.first = append(r.first, file)
	}
	for _, a := range st.aside {
		r.first = append(r.first, asideFile(st.name.base, a.gen, a.reason))
	}
	if r.last == "" && len(r.first) > 0 {
		r.first, r.last = r.first[1:], r.first[0]
	}
	return r, nil
}

// removeLast takes the last file away. A whole record becomes the mark of the highest generation in its directory, by one
// rename, which needs no room: so no number comes back.
func (s *Store) removeLast(st *stream, r removal) (floor uint64, err error) {
	if r.last == "" {
		return 0, nil
	}
	s.books.mu.Lock()
	top, old := st.top, st.in.floor
	s.books.mu.Unlock()
	switch {
	case r.whole && top > old:
		err = s.dir.sys.rename(st.in.fd, r.last, floorFile(top))
		if isTaken(err) { // the record of another stream with that number is the mark already; once that is durable, ours may go
			if err = st.in.barrier.wait(); err == nil {
				err = s.dir.sys.unlink(st.in.fd, r.last)
			}
		}
		floor = top
	case top > old:
		floor = s.makeFloor(st.in, top)
		err = s.dir.sys.unlink(st.in.fd, r.last)
	default:
		err = s.dir.sys.unlink(st.in.fd, r.last)
	}
	if isMedia(err) {
		if _, gone := s.dir.sys.statAt(st.in.fd, r.last); isGone(gone) {
			s.books.vanishStream(st)
		}
		return 0, indeterminate(err)
	}
	if isGone(err) {
		return 0, nil
	}
	return floor, err
}

// makeFloor makes the mark where no whole record can become it. On a full disk it goes without: then nothing of the stream is
// left that the number could be taken for.
func (s *Store) makeFloor(f *folder, gen uint64) uint64 {
	fd, err := s.dir.sys.openAt(f.fd, floorFile(gen), openNew)
	if err != nil {
		return 0
	}
	s.dir.sys.close(fd)
	return gen
}

// afterRemoval is housekeeping: what fails here is done by a later call, or does no harm.
func (s *Store) afterRemoval(st *stream, floor uint64) {
	s.books.mu.Lock()
	old, marked := st.in.floor, st.marked
	st.in.floor = max(old, floor)
	st.marked = false
	s.books.mu.Unlock()
	if floor != 0 {
		s.dir.truncateFile(st.in.fd, floorFile(floor)) // the payload of what is deleted has no business there
	}
	if floor != 0 && old != 0 && floor > old {
		_ = s.dir.sys.unlink(st.in.fd, floorFile(old))
	}
	if marked {
		_ = s.dir.sys.unlink(st.in.fd, unsureFile(st.name.base))
	}
}
