// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"fmt"
	"slices"
)

// reserve books the bytes of a file to come against the quota.
func (s *Store) reserve(size int64) error {
	if s.books.bytes.bookBytes(size) {
		return nil
	}
	s.trimAll()
	if s.books.bytes.bookBytes(size) {
		return nil
	}
	used := s.books.bytes.usedBytes()
	return fmt.Errorf("%w: the store has %d bytes and may have %d, the record needs %d", ErrFull, used, s.o.MaxStore, size)
}

// makeRoom gives the disk back what the store can do without, and reports whether that was anything.
func (s *Store) makeRoom() bool {
	trimmed := s.trimAll()
	return s.releaseBallast() || trimmed
}

// trim drops the generations of a stream that are neither among the newest to keep nor among the newest two verified.
func (s *Store) trim(st *stream, keep int) (dropped bool) {
	for {
		s.books.mu.Lock()
		gen, ok := st.surplus(keep)
		var g generation
		if ok {
			g, _ = st.drop(gen)
		}
		s.books.mu.Unlock()
		if !ok {
			return dropped
		}
		if err := s.dir.sys.unlink(st.in.fd, recordFile(st.name.base, gen)); err != nil && !isGone(err) {
			s.books.mu.Lock()
			st.add(g) // still there; the next Put tries again
			s.books.mu.Unlock()
			return dropped
		}
		s.books.bytes.refundBytes(g.size)
		dropped = true
	}
}

func (s *Store) trimAll() (dropped bool) {
	var all []*stream
	s.books.mu.Lock()
	s.books.visitStreams(func(st *stream) {
		if !st.unsure { // which of its generations are durable is not known
			all = append(all, st)
		}
	})
	s.books.mu.Unlock()
	for _, st := range all {
		dropped = s.trim(st, minGenerations) || dropped
	}
	return dropped
}

// openBallast takes in the ballast that is there, or makes it, at Open.
func (s *Store) openBallast() {
	info, err := s.dir.sys.statAt(s.books.root.fd, ballastFile)
	if err == nil && info.regular && info.size == s.o.Ballast {
		s.ballast = true
		s.books.bytes.addBytes(info.size)
		return
	}
	if err == nil {
		_ = s.dir.sys.unlink(s.books.root.fd, ballastFile)
	}
	s.makeBallast()
}

// restoreBallast makes the ballast again when there is plenty of room: taking the last of it would only have to be
// undone.
func (s *Store) restoreBallast() {
	s.books.mu.Lock()
	held := s.ballast
	s.books.mu.Unlock()
	if held || s.o.Ballast < 0 {
		return
	}
	if room, err := s.dir.sys.room(s.books.root.fd); err == nil && room > 4*s.o.Ballast {
		s.makeBallast()
	}
}

func (s *Store) makeBallast() {
	if s.o.Ballast < 0 || !s.books.bytes.bookBytes(s.o.Ballast) {
		return
	}
	s.books.mu.Lock()
	mine := !s.ballast
	s.ballast = true
	s.books.mu.Unlock()
	if mine && s.fillBallast() == nil {
		return
	}
	s.books.mu.Lock()
	defer s.books.mu.Unlock()
	s.books.bytes.refundBytes(s.o.Ballast)
	s.ballast = s.ballast && !mine
}

func (s *Store) fillBallast() error {
	fd, err := s.dir.sys.openAt(s.books.root.fd, ballastFile, openNew)
	if err != nil {
		return err
	}
	err = s.dir.sys.chmod(fd, permFile)
	if err == nil {
		err = s.dir.sys.allocate(fd, s.o.Ballast)
	}
	if closing := s.dir.sys.close(fd); err == nil {
		err = closing
	}
	if err != nil {
		_ = s.dir.sys.unlink(s.books.root.fd, ballastFile)
	}
	return err
}

func (s *Store) releaseBallast() bool {
	s.books.mu.Lock()
	held := s.ballast
	s.ballast = false
	s.books.mu.Unlock()
	if !held || s.dir.sys.unlink(s.books.root.fd, ballastFile) != nil {
		return false
	}
	s.books.bytes.refundBytes(s.o.Ballast)
	return true
}

// addAside enters a file that was set aside. Called with books.mu.
func (st *stream) addAside(a aside) {
	st.top = max(st.top, a.gen)
	st.aside = append(st.aside, a)
	slices.SortFunc(st.aside, func(a, b aside) int { return descending(a.gen, b.gen) })
}

// setAside renames a file that can never become good again, so that it is kept as evidence and its number stays taken.
// What may be good (unreadable for now), or is not ours to touch, stays where it is. Where the disk refuses, so does a
// damaged file: it is found damaged again.
func (s *Store) setAside(st *stream, gen uint64, f *flaw) {
	switch f.reason {
	case reasonTooNew, reasonUntrusted, reasonUnreadable:
		return
	case reasonMissing:
		s.books.forgetGeneration(st, gen)
		return
	}
	to := asideFile(st.name.base, gen, f.reason)
	if err := s.dir.sys.rename(st.in.fd, recordFile(st.name.base, gen), to); err != nil {
		return
	}
	s.books.mu.Lock()
	if g, ok := st.drop(gen); ok {
		st.addAside(aside{gen: gen, size: g.size, reason: f.reason})
	}
	s.books.mu.Unlock()
	s.bound(st)
	s.boundAll()
}

// bound keeps the newest few of a stream's files that were set aside.
func (s *Store) bound(st *stream) {
	for {
		s.books.mu.Lock()
		if len(st.aside) <= asideStream {
			s.books.mu.Unlock()
			return
		}
		i := surplus(st.aside)
		a := st.aside[i]
		st.aside = slices.Delete(st.aside, i, i+1)
		s.books.bytes.refundBytes(a.size)
		s.books.mu.Unlock()
		_ = s.dir.sys.unlink(st.in.fd, asideFile(st.name.base, a.gen, a.reason)) // the next Open finds it again
	}
}

// surplus is which of too many to drop: the oldest, but not the only sign of damage beside foreign records, without
// which the stream would read as absent.
func surplus(all []aside) int {
	last := len(all) - 1
	damaged := func(a aside) bool { return a.reason != reasonForeign }
	if damaged(all[last]) && !slices.ContainsFunc(all[:last], damaged) {
		return last - 1
	}
	return last
}

// boundAll keeps the content of what was set aside below a limit. What goes beyond is emptied, lowest generations
// first: the name still says that there was damage, so that it does not turn into absence.
func (s *Store) boundAll() {
	for {
		st, a, ok := s.books.takeHeaviest()
		if !ok {
			return
		}
		s.dir.truncateFile(st.in.fd, asideFile(st.name.base, a.gen, a.reason))
	}
}
