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
	names, err := s.sys.list(s.root.fd)
	if err != nil {
		return err
	}
	s.adopt(s.root, names)
	slices.Sort(names)
	for _, dir := range names {
		if checkDir(dir) == nil {
			s.adoptDir(dir)
		}
	}
	var buf []byte
	for _, f := range s.allFolders() {
		for _, st := range f.sorted() {
			buf = s.verify(st, buf)
			s.bound(st)
		}
	}
	s.boundAll()
	s.confirmAll()
	s.openBallast()
	return nil
}

// adoptDir takes in a directory of streams. One that can not be read costs its own streams only.
func (s *Store) adoptDir(dir string) {
	info, err := s.sys.statAt(s.root.fd, dir)
	if err == nil && !info.dir {
		return // a stranger's file
	}
	f, names, err := s.openDirectory(dir)
	if err != nil {
		f = newFolder(dir, -1, fileID{}, s.sys)
		f.err = fmt.Errorf("directory %q: %w", dir, err)
		s.o.OnDamage(Damage{Stream: dir, Reason: ReasonUnreadable, Err: err})
	}
	s.folders[dir] = f
	s.adopt(f, names)
}

func (s *Store) openDirectory(dir string) (*folder, []string, error) {
	fd, info, err := openFolder(s.sys, s.root.fd, dir, s.load.uid)
	if err != nil {
		return nil, nil, err
	}
	f := newFolder(dir, fd, info.id, s.sys)
	if info.perm&openToOthers != 0 {
		err = s.sys.chmod(fd, permDir)
		if isReadOnly(err) {
			err = nil
		}
	}
	if err == nil {
		err = f.open()
	}
	var names []string
	if err == nil {
		names, err = s.sys.list(fd)
	}
	if err != nil {
		f.close()
		return nil, nil, err
	}
	return f, names, nil
}

// adopt takes in the files of one directory by their names. What is left of a Put that was killed is removed. The fsync makes
// the entries durable that a killed Put had not come to; where it fails, no record counts as confirmed.
func (s *Store) adopt(f *folder, names []string) {
	for _, file := range names {
		if strings.HasPrefix(file, tempPrefix) {
			_ = s.sys.unlink(f.fd, file) // where that fails, the next Open does it
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
	info, err := s.sys.statAt(f.fd, file)
	if isGone(err) {
		return
	}
	size := info.size // 0 where the system does not say; reading will tell
	s.used += size
	if p.kind == kindRecord {
		st.add(generation{gen: p.gen, size: size})
		return
	}
	st.addAside(aside{gen: p.gen, size: size, reason: p.reason})
}

// verify reads every generation of a stream.
func (s *Store) verify(st *stream, buf []byte) []byte {
	for _, g := range slices.Clone(st.gens) {
		h, _, grown, f := s.load.load(st.in.fd, st.name, g.gen, buf)
		buf = grown
		if f != nil {
			s.tell(st, g.gen, f)
			s.setAside(st, g.gen, f)
			continue
		}
		entry := st.find(g.gen)
		entry.digest, entry.verified = h.payload, true
	}
	return buf
}

// confirmAll writes the newest record of each stream again whose last Put or Open was not confirmed: only the success of a
// fresh generation shows what the disk holds. Where that fails, the stream stays unsure, and readable.
func (s *Store) confirmAll() {
	ctx := context.Background()
	for _, f := range s.allFolders() {
		for _, st := range f.sorted() {
			if !st.marked || len(st.gens) == 0 || st.gens[0].is(ReasonTooNew) {
				continue
			}
			if rec, err := s.read(ctx, st); err == nil {
				_ = s.commit(ctx, st, digestOf(rec.Payload), rec.Payload) // st.unsure keeps the failure
			}
		}
	}
}

// allFolders gives the folders in one order. Used at Open only.
func (s *Store) allFolders() []*folder {
	all := []*folder{s.root}
	for _, f := range s.folders {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *folder) int { return strings.Compare(a.dir, b.dir) })
	return all
}

func (f *folder) sorted() []*stream {
	all := make([]*stream, 0, len(f.streams))
	for _, st := range f.streams {
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b *stream) int { return strings.Compare(a.name.base, b.name.base) })
	return all
}
