// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import "fmt"

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

// restoreBallast makes the ballast again when there is plenty of room: taking the last of it would only have to be undone.
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
