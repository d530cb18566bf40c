// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"slices"
	"strings"
	"sync"
)

// account counts the bytes of all files of a store, and of those that are about to be written.
type account struct {
	limit int64 // what all files may have

	mu   sync.Mutex
	used int64
}

// bookBytes counts the bytes of a file to come, unless the limit forbids them.
func (a *account) bookBytes(size int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used+size > a.limit {
		return false
	}
	a.used += size
	return true
}

// addBytes counts the bytes of a file that is there, whatever the limit.
func (a *account) addBytes(size int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used += size
}

// refundBytes takes the bytes of a file off that is gone.
func (a *account) refundBytes(size int64) { a.addBytes(-size) }

// usedBytes gives the bytes of all files.
func (a *account) usedBytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

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
