// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// recover brings the directory and what is known about it together, at Open. It never removes a record that verifies, so it
// may be killed anywhere and run again.
func (s *Store) recover() error {
	names, err := s.dir.sys.list(s.books.root.fd)
	if err != nil {
		return err
	}
	s.adopt(s.books.root, names)
	s.examine(s.books.root)
	slices.Sort(names)
	for _, dir := range names {
		info, err := s.dir.sys.statAt(s.books.root.fd, dir)
		if checkDir(dir) != nil || err == nil && !info.dir {
			continue // a stranger's, or one of ours with another meaning
		}
		if f := s.takeIn(dir); f.err != nil {
			s.o.OnDamage(Damage{Stream: dir, Reason: reasonUnreadable, Err: f.err})
		}
	}
	s.space.ballast.openBallast()
	if s.books.bytes.usedBytes() > s.o.MaxStore { // what a crash kept had been dropped
		s.space.trimAll()
	}
	return nil
}

// takeIn takes in a directory of streams. One that can not be read costs its own streams only, until it can be.
func (s *Store) takeIn(dir string) *folder {
	f, names, err := s.dir.openStreams(dir)
	if err != nil {
		f = newFolder(dir, -1, fileID{}, s.dir.sys)
		f.err = fmt.Errorf("directory %q: %w", dir, err)
	} else {
		s.adopt(f, names)
	}
	s.books.addFolder(f)
	s.examine(f)
	return f
}

// examine verifies every record of a directory, and confirms what was not.
func (s *Store) examine(f *folder) {
	var buf []byte
	for _, st := range s.books.sortStreams(f) {
		buf = s.verify(st, buf)
		s.evidence.boundStream(st)
	}
	s.evidence.boundAll()
	s.confirm(f)
}

// adopt takes in the files of one directory by their names. What is left of a Put that was killed is removed. The fsync makes
// the entries durable that a killed Put had not come to; where it fails, no record counts as confirmed.
func (s *Store) adopt(f *folder, names []string) {
	for _, file := range names {
		if strings.HasPrefix(file, tempPrefix) {
			_ = s.dir.sys.unlink(f.fd, file) // where that fails, the next Open does it
			continue
		}
		if floor, ok := strings.CutPrefix(file, floorPrefix); ok {
			if gen, ok := parseGen(floor); ok {
				f.floor = max(f.floor, gen)
			}
		}
		if p, ok := parseFile(file); ok {
			s.adoptFile(f, p, file)
		}
	}
	if len(f.streams) == 0 || f.barrier.wait() == nil {
		return
	}
	for _, st := range f.streams {
		st.unsure = true
	}
}

func (s *Store) adoptFile(f *folder, p fileName, file string) {
	st := f.stream(p.base)
	if p.kind == kindUnsure {
		st.unsure, st.marked = true, true
		return
	}
	info, err := s.dir.sys.statAt(f.fd, file)
	if isGone(err) {
		return
	}
	size := info.size // 0 where the system does not say; reading will tell
	s.books.bytes.addBytes(size)
	if p.kind == kindRecord {
		st.add(generation{gen: p.gen, size: size})
		return
	}
	st.addAside(aside{gen: p.gen, size: size, reason: p.reason})
}

// verify reads every generation of a stream.
func (s *Store) verify(st *stream, buf []byte) []byte {
	for _, g := range s.books.copyGenerations(st) {
		h, payload, grown, f := s.load.load(st.in.fd, st.name, g.gen, buf)
		buf = grown
		if f != nil {
			s.evidence.reportDamage(st, g.gen, f)
			s.evidence.setAside(st, g.gen, f)
			continue
		}
		s.books.markVerified(st, g.gen, h.payload, hintOf(payload))
	}
	return buf
}

// confirm writes the newest record of each stream again whose last Put was not confirmed: only the success of a fresh
// generation shows what the disk holds. Where that fails, the stream stays unsure, and readable.
func (s *Store) confirm(f *folder) {
	ctx := context.Background() //nolint:forbidigo // Open has none, and what it reads is bounded
	for _, st := range s.books.sortStreams(f) {
		if !st.marked || len(st.gens) == 0 || st.gens[0].is(reasonTooNew) {
			continue
		}
		rec, err := s.read(ctx, st)
		if err != nil || st.take(ctx) != nil {
			continue
		}
		_ = s.commit(ctx, st, rec.Payload, hintOf(rec.Payload)) // st.unsure keeps the failure
		st.release()
	}
}
