// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// books are what a store knows about its directories, their streams and its bytes. They are changed before or after the
// disk is, and never call it. Each method takes mu for its own time.
type books struct {
	bytes account

	mu      sync.Mutex // guards what follows, and what folders and streams say; never held across a system call
	root    *folder
	folders map[string]*folder // by name, without the store's own
}

// findFolder returns a directory of the store, nil where it is not known; "" is the store's own.
func (b *books) findFolder(dir string) *folder {
	if dir == "" {
		return b.root
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.folders[dir]
}

// addFolder enters a directory, in the place of the one that was known by its name.
func (b *books) addFolder(f *folder) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.folders[f.dir] = f
}

// findStream returns the stream with a base name in a directory, nil where it is not known.
func (b *books) findStream(f *folder, base string) *stream {
	b.mu.Lock()
	defer b.mu.Unlock()
	return f.streams[base]
}

// enterStream is findStream, and makes the stream where it is not known.
func (b *books) enterStream(f *folder, base string) *stream {
	b.mu.Lock()
	defer b.mu.Unlock()
	return f.stream(base)
}

// visitStreams calls do for every stream. Called with mu.
func (b *books) visitStreams(do func(*stream)) {
	for _, st := range b.root.streams {
		do(st)
	}
	for _, f := range b.folders {
		for _, st := range f.streams {
			do(st)
		}
	}
}

// sortStreams returns the streams of a directory by their names.
func (b *books) sortStreams(f *folder) []*stream {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*stream, 0, len(f.streams))
	for _, st := range f.streams {
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b *stream) int { return strings.Compare(a.name.base, b.name.base) })
	return all
}

// listPresent returns the full names of the streams in a directory that reading finds, sorted.
func (b *books) listPresent(f *folder) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	for _, st := range f.streams {
		if st.present() {
			names = append(names, st.name.String())
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

// copyGenerations returns the generations of a stream, newest first.
func (b *books) copyGenerations(st *stream) []generation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(st.gens)
}

// findNewest gives the highest generation below a bound.
func (b *books) findNewest(st *stream, below uint64) (uint64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range st.gens {
		if st.gens[i].gen < below {
			return st.gens[i].gen, true
		}
	}
	return 0, false
}

// findStanding returns the newest record, if it is acknowledged. It refuses what may not be written over.
func (b *books) findStanding(st *stream) (generation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(st.gens) == 0 || st.unsure {
		return generation{}, nil
	}
	newest := st.gens[0]
	if newest.is(reasonTooNew) {
		return generation{}, &Damage{
			Stream: st.name.String(), Generation: newest.gen, Reason: reasonTooNew, Err: newest.flaw.err,
		}
	}
	return newest, nil
}

func (b *books) holdsGeneration(st *stream, gen uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return st.find(gen) != nil
}

// nextGeneration is the number that the next write of a stream gets.
func (b *books) nextGeneration(st *stream) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return st.next()
}

// burnNumber gives up a number that a stranger's file has.
func (b *books) burnNumber(st *stream, gen uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st.top = max(st.top, gen)
}

// markVerified notes that a generation was read and found whole.
func (b *books) markVerified(st *stream, gen uint64, payload digest, hint uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := st.find(gen); g != nil {
		g.digest, g.hint, g.verified = payload, hint, true
	}
}

// markFlawed notes why a generation could not be used, and reports whether that is to be told: it is there, and was not
// told before.
func (b *books) markFlawed(st *stream, gen uint64, f *flaw) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := st.find(gen)
	news = g != nil && !g.told
	if g != nil {
		g.told, g.flaw, g.verified = true, f, false
	}
	return news
}

// forgetGeneration takes a generation whose file is gone out of the books.
func (b *books) forgetGeneration(st *stream, gen uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g, ok := st.drop(gen); ok {
		b.bytes.refundBytes(g.size)
	}
}

// mergeDamage adds the files above a generation that were set aside earlier.
func (b *books) mergeDamage(st *stream, above uint64, damage []Damage) []Damage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return mergeAside(st.name, st.aside, above, damage)
}

// takeHeaviest takes the next file to empty out of the books, if what was set aside exceeds its limit.
func (b *books) takeHeaviest() (*stream, aside, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var total int64
	var lowest *aside
	var of *stream
	b.visitStreams(func(st *stream) {
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
	b.bytes.refundBytes(lowest.size)
	lowest.size = 0
	return of, a, true
}

// clearStream empties the books of a stream, but for its number, and reports whether an earlier removal was not
// confirmed.
func (b *books) clearStream(st *stream) (unsure bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range st.gens {
		b.bytes.refundBytes(g.size)
	}
	for _, a := range st.aside {
		b.bytes.refundBytes(a.size)
	}
	unsure = st.unsure
	st.gens, st.aside, st.unsure = st.gens[:0], nil, false
	return unsure
}

// vanishStream empties the books, and has the next Delete not take the stream for gone.
func (b *books) vanishStream(st *stream) {
	b.clearStream(st)
	b.mu.Lock()
	defer b.mu.Unlock()
	st.unsure = true
}

// folder is one directory of the store, open for as long as the store is.
type folder struct {
	dir     string // "" = the store's own
	fd      int
	id      fileID
	barrier barrier
	err     error // why the directory can not be used; its streams have no other state then

	// Guarded by books.mu.
	streams map[string]*stream
	floor   uint64 // the highest generation of any stream that was deleted from here
}

// stream is what is known about one stream. Its files are in the folder.
type stream struct {
	name name
	in   *folder
	// busy holds one token: the writer has taken it. It guards draft.
	busy  chan struct{}
	draft draft

	// Guarded by books.mu.
	gens   []generation // newest first
	aside  []aside      // highest generation first
	top    uint64       // the highest generation that was ever named
	unsure bool         // the newest generation was not confirmed: an equal payload must be written, too
	marked bool         // the directory has a file that says unsure
}

// generation is a file that carries a number of the stream.
type generation struct {
	gen      uint64
	size     int64
	digest   digest // where verified
	hint     uint32 // where verified: a quick checksum, to see that a large payload is another one
	verified bool   // read and found whole, or written and acknowledged, by this Store
	flaw     *flaw  // why it could not be used when it was looked at last
	told     bool   // OnDamage knows
	doubtful bool   // not confirmed, and perhaps not even there
}

// aside is a file that was set aside.
type aside struct {
	gen    uint64
	size   int64
	reason string
}

func newFolder(dir string, fd int, id fileID, sys fsys) *folder {
	f := &folder{dir: dir, fd: fd, id: id, streams: map[string]*stream{}}
	f.barrier = barrier{sys: sys, dir: fd, fd: -1, turn: make(chan struct{}, 1)}
	return f
}

// setFD gives the folder its descriptor.
func (f *folder) setFD(fd int) { f.fd, f.barrier.dir = fd, fd }

// open readies the folder's descriptors: the one for fsync has to be there before the first change, so that no error of
// the disk gets by unseen.
func (f *folder) open() error {
	fd, err := f.barrier.sys.openAt(f.fd, ".", openDir)
	if err == nil {
		f.barrier.fd = fd
	}
	return err
}

func (f *folder) close() {
	f.barrier.close()
	if f.fd >= 0 {
		f.barrier.sys.close(f.fd)
	}
}

// stream returns the stream with a base name, and makes it where it is not known. Called with books.mu.
func (f *folder) stream(base string) *stream {
	st := f.streams[base]
	if st == nil {
		st = &stream{name: nameIn(f.dir, base), in: f, busy: make(chan struct{}, 1)}
		f.streams[base] = st
	}
	return st
}

// take waits for the stream's turn to write; release ends it.
func (st *stream) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case st.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (st *stream) release() { <-st.busy }

// next is the generation that the next write gets. Called with books.mu.
func (st *stream) next() uint64 { return max(st.top, st.in.floor) + 1 }

// add enters a generation that the directory now has. Called with books.mu.
func (st *stream) add(g generation) {
	st.top = max(st.top, g.gen)
	st.gens = append(st.gens, g)
	slices.SortFunc(st.gens, func(a, b generation) int { return descending(a.gen, b.gen) })
}

// find returns the entry of a generation, nil where it is gone. Called with books.mu; not valid after it.
func (st *stream) find(gen uint64) *generation {
	for i := range st.gens {
		if st.gens[i].gen == gen {
			return &st.gens[i]
		}
	}
	return nil
}

// drop takes a generation out. Called with books.mu.
func (st *stream) drop(gen uint64) (generation, bool) {
	i := slices.IndexFunc(st.gens, func(g generation) bool { return g.gen == gen })
	if i < 0 {
		return generation{}, false
	}
	g := st.gens[i]
	st.gens = slices.Delete(st.gens, i, i+1)
	return g, true
}

// addAside enters a file that was set aside. Called with books.mu.
func (st *stream) addAside(a aside) {
	st.top = max(st.top, a.gen)
	st.aside = append(st.aside, a)
	slices.SortFunc(st.aside, func(a, b aside) int { return descending(a.gen, b.gen) })
}

// surplus returns the lowest generation that neither the number to keep nor the rule of the two newest verified ones
// holds. What a newer version wrote is never surplus. Called with books.mu.
func (st *stream) surplus(keep int) (uint64, bool) {
	verified := 0
	for i, g := range st.gens {
		if i >= keep && verified >= minGenerations && !g.is(reasonTooNew) {
			return st.lowest(i)
		}
		if g.verified {
			verified++
		}
	}
	return 0, false
}

// lowest returns the lowest generation that may go, given that the one at index i may.
func (st *stream) lowest(i int) (uint64, bool) {
	for j := len(st.gens) - 1; j > i; j-- {
		if !st.gens[j].is(reasonTooNew) {
			return st.gens[j].gen, true
		}
	}
	return st.gens[i].gen, true
}

func (g *generation) is(r string) bool { return g.flaw != nil && g.flaw.reason == r }
