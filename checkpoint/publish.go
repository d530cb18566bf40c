// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
)

// publish gives a durable file its number, which is the commit, and makes the number durable.
func (s *Store) publish(ctx context.Context, st *stream, temp string, g generation) error {
	file := recordFile(st.name.base, g.gen)
	err := ctx.Err()
	if err == nil {
		if err = s.sys.rename(st.in.fd, temp, file); isMedia(err) {
			return s.unconfirmed(st, temp, g, err)
		}
	}
	if err != nil {
		_ = s.sys.unlink(st.in.fd, temp)
		s.refund(g.size)
		s.burn(st, g.gen, err)
		return err
	}
	if err := st.in.barrier.wait(); err != nil {
		return s.unconfirmed(st, temp, g, err)
	}
	s.acknowledge(st, g)
	return nil
}

// burn gives up a number that a stranger's file has.
func (s *Store) burn(st *stream, gen uint64, err error) {
	if !isTaken(err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.top = max(st.top, gen)
}

// acknowledge enters a durable generation, then drops what it made surplus. The next fsync of the directory covers that.
func (s *Store) acknowledge(st *stream, g generation) {
	s.mu.Lock()
	st.add(g)
	unmark := st.marked
	st.unsure, st.marked = false, false
	s.mu.Unlock()
	if unmark {
		_ = s.sys.unlink(st.in.fd, unsureFile(st.name.base)) // one left behind costs one write at the next Open
	}
	s.trim(st, s.o.Generations)
	s.restoreBallast()
}

// unconfirmed enters a generation that may or may not be there after a crash. A mark in the directory tells the next Open,
// as what it reads from the cache would look good. The mark needs no fsync: it is lost only together with the cache.
func (s *Store) unconfirmed(st *stream, temp string, g generation, cause error) error {
	_, err := s.sys.statAt(st.in.fd, recordFile(st.name.base, g.gen))
	gone := isGone(err)
	g.verified, g.doubtful = false, true
	s.mu.Lock()
	if gone {
		s.used -= g.size
	} else {
		st.add(g) // where the system does not say, reading will tell
	}
	st.top = max(st.top, g.gen)
	st.unsure = true
	marked := st.marked
	s.mu.Unlock()
	if gone {
		_ = s.sys.unlink(st.in.fd, temp)
	}
	if !marked {
		s.mark(st)
	}
	return indeterminate(fmt.Errorf("generation %d: %w", g.gen, cause))
}

func (s *Store) mark(st *stream) {
	fd, err := s.sys.openAt(st.in.fd, unsureFile(st.name.base), openNew)
	if err != nil {
		return
	}
	s.sys.close(fd)
	s.mu.Lock()
	st.marked = true
	s.mu.Unlock()
}
