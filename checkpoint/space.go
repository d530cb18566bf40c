// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"fmt"
	"slices"
)

// reserve books the bytes of a file to come against the quota.
func (s *Store) reserve(size int64) error {
	if s.book(size) {
		return nil
	}
	s.trimAll()
	if s.book(size) {
		return nil
	}
	s.mu.Lock()
	used := s.used
	s.mu.Unlock()
	return fmt.Errorf("%w: the store has %d bytes and may have %d, the record needs %d", ErrFull, used, s.o.MaxStore, size)
}

func (s *Store) book(size int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used+size > s.o.MaxStore {
		return false
	}
	s.used += size
	return true
}

func (s *Store) refund(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= size
}

// makeRoom gives the disk back what the store can do without, and reports whether that was anything.
func (s *Store) makeRoom() bool {
	trimmed := s.trimAll()
	return s.releaseBallast() || trimmed
}

// trim drops the generations of a stream that are neither among the newest to keep nor among the newest two verified.
func (s *Store) trim(st *stream, keep int) (dropped bool) {
	for {
		s.mu.Lock()
		gen, ok := st.surplus(keep)
		var g generation
		if ok {
			g, _ = st.drop(gen)
		}
		s.mu.Unlock()
		if !ok {
			return dropped
		}
		if err := s.sys.unlink(st.in.fd, recordFile(st.name.base, gen)); err != nil && !isGone(err) {
			s.mu.Lock()
			st.add(g) // still there; the next Put tries again
			s.mu.Unlock()
			return dropped
		}
		s.refund(g.size)
		dropped = true
	}
}

func (s *Store) trimAll() (dropped bool) {
	var all []*stream
	s.mu.Lock()
	s.eachStream(func(st *stream) {
		if !st.unsure { // which of its generations are durable is not known
			all = append(all, st)
		}
	})
	s.mu.Unlock()
	for _, st := range all {
		dropped = s.trim(st, minGenerations) || dropped
	}
	return dropped
}

// openBallast takes in the ballast that is there, or makes it, at Open.
func (s *Store) openBallast() {
	info, err := s.sys.statAt(s.root.fd, ballastFile)
	if err == nil && info.regular && info.size == s.o.Ballast {
		s.ballast = true
		s.used += info.size
		return
	}
	if err == nil {
		_ = s.sys.unlink(s.root.fd, ballastFile)
	}
	s.makeBallast()
}

// restoreBallast makes the ballast again when there is plenty of room: taking the last of it would only have to be
// undone.
func (s *Store) restoreBallast() {
	s.mu.Lock()
	held := s.ballast
	s.mu.Unlock()
	if held || s.o.Ballast < 0 {
		return
	}
	if room, err := s.sys.room(s.root.fd); err == nil && room > 4*s.o.Ballast {
		s.makeBallast()
	}
}

func (s *Store) makeBallast() {
	if s.o.Ballast < 0 || !s.book(s.o.Ballast) {
		return
	}
	s.mu.Lock()
	mine := !s.ballast
	s.ballast = true
	s.mu.Unlock()
	if mine && s.fillBallast() == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= s.o.Ballast
	s.ballast = s.ballast && !mine
}

func (s *Store) fillBallast() error {
	fd, err := s.sys.openAt(s.root.fd, ballastFile, openNew)
	if err != nil {
		return err
	}
	err = s.sys.chmod(fd, permFile)
	if err == nil {
		err = s.sys.allocate(fd, s.o.Ballast)
	}
	if closing := s.sys.close(fd); err == nil {
		err = closing
	}
	if err != nil {
		_ = s.sys.unlink(s.root.fd, ballastFile)
	}
	return err
}

func (s *Store) releaseBallast() bool {
	s.mu.Lock()
	held := s.ballast
	s.ballast = false
	s.mu.Unlock()
	if !held || s.sys.unlink(s.root.fd, ballastFile) != nil {
		return false
	}
	s.refund(s.o.Ballast)
	return true
}

// addAside enters a file that was set aside. Called with Store.mu.
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
		s.forget(st, gen)
		return
	}
	to := asideFile(st.name.base, gen, f.reason)
	if err := s.sys.rename(st.in.fd, recordFile(st.name.base, gen), to); err != nil {
		return
	}
	s.mu.Lock()
	if g, ok := st.drop(gen); ok {
		st.addAside(aside{gen: gen, size: g.size, reason: f.reason})
	}
	s.mu.Unlock()
	s.bound(st)
	s.boundAll()
}

// forget takes a generation whose file is gone out of the books.
func (s *Store) forget(st *stream, gen uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g, ok := st.drop(gen); ok {
		s.used -= g.size
	}
}

// bound keeps the newest few of a stream's files that were set aside.
func (s *Store) bound(st *stream) {
	for {
		s.mu.Lock()
		if len(st.aside) <= asideStream {
			s.mu.Unlock()
			return
		}
		i := surplus(st.aside)
		a := st.aside[i]
		st.aside = slices.Delete(st.aside, i, i+1)
		s.used -= a.size
		s.mu.Unlock()
		_ = s.sys.unlink(st.in.fd, asideFile(st.name.base, a.gen, a.reason)) // the next Open finds it again
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
		st, a, ok := s.heaviest()
		if !ok {
			return
		}
		s.truncateFile(st.in.fd, asideFile(st.name.base, a.gen, a.reason))
	}
}

// heaviest takes the next file to empty out of the books, if the limit is exceeded.
func (s *Store) heaviest() (*stream, aside, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var total int64
	var lowest *aside
	var of *stream
	s.eachStream(func(st *stream) {
		for i := range st.aside {
			a := &st.aside[i]
			total += a.size
			if a.size > 0 && (lowest == nil || a.gen < lowest.gen) {
				lowest, of = a, st
			}
		}
	})
	if total <= asideBytes || lowest == nil {
		return nil, aside{}, false
	}
	a := *lowest
	s.used -= lowest.size
	lowest.size = 0
	return of, a, true
}

// truncateFile empties a file, if it is ours. Where the disk refuses, the next Open counts its bytes again.
func (s *Store) truncateFile(dir int, file string) {
	fd, err := s.sys.openAt(dir, file, openWrite)
	if err != nil {
		return
	}
	defer s.sys.close(fd)
	if info, err := s.sys.stat(fd); err == nil && info.checkFile(s.load.uid) == nil {
		_ = s.sys.truncate(fd)
	}
}

// eachStream calls do for every stream. Called with mu.
func (s *Store) eachStream(do func(*stream)) {
	for _, st := range s.root.streams {
		do(st)
	}
	for _, f := range s.folders {
		for _, st := range f.streams {
			do(st)
		}
	}
}
