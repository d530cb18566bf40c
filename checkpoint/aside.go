// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"slices"
)

// addAside enters a file that was set aside. Called with Store.mu.
func (st *stream) addAside(a aside) {
	st.top = max(st.top, a.gen)
	st.aside = append(st.aside, a)
	slices.SortFunc(st.aside, func(a, b aside) int { return descending(a.gen, b.gen) })
}

// setAside renames a file that can never become good again, so that it is kept as evidence and its number stays taken. What
// may be good (unreadable for now), or is not ours to touch, stays where it is. Where the disk refuses, so does a damaged
// file: it is found damaged again.
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

// surplus is which of too many to drop: the oldest, but not the only sign of damage beside foreign records, without which the stream would read as absent.
func surplus(all []aside) int {
	last := len(all) - 1
	damaged := func(a aside) bool { return a.reason != reasonForeign }
	if damaged(all[last]) && !slices.ContainsFunc(all[:last], damaged) {
		return last - 1
	}
	return last
}

// boundAll keeps the content of what was set aside below a limit. What goes beyond is emptied, lowest generations first: the
// name still says that there was damage, so that it does not turn into absence.
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
