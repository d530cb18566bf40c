// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"hash/crc32"
	"io"
	"slices"
	"sync"
)

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
	// busy holds one token: whoever writes has taken it. It guards draft.
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

// barrier makes the entries of one directory durable. Callers that arrive while an fsync runs share the next one.
type barrier struct {
	sys fsys
	dir int // only opens a new descriptor after a failure

	turn chan struct{} // holds one token for the length of an fsync; guards fd
	fd   int           // never fsynced again after an error, but replaced

	mu   sync.Mutex
	next *flight // who arrives now waits for this one
}

// flight is one fsync to come, and what came of it. Its fields belong to whoever holds the turn.
type flight struct {
	done bool
	err  error
}

// wait returns after an fsync of the directory that began after wait was called.
func (b *barrier) wait() error {
	b.mu.Lock()
	if b.next == nil {
		b.next = &flight{}
	}
	f := b.next
	b.mu.Unlock()

	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	if f.done {
		return f.err
	}
	b.mu.Lock()
	b.next = nil // who arrives from here on may have changed the directory after the fsync below began
	b.mu.Unlock()
	f.done, f.err = true, b.flush()
	return f.err
}

func (b *barrier) flush() error {
	if b.fd < 0 {
		fd, err := b.sys.openAt(b.dir, ".", openDir)
		if err != nil {
			return err
		}
		b.fd = fd
	}
	err := b.sys.sync(b.fd)
	if err != nil {
		b.sys.close(b.fd)
		b.fd = -1
	}
	return err
}

func (b *barrier) close() {
	if b.fd >= 0 {
		b.sys.close(b.fd)
	}
}

// overlap is the payload size, in bytes, from which the digest is made while the disk takes the payload in.
const overlap = 256 << 10

// draft is a record that is being written, and the memory for it, which is used again.
type draft struct {
	header  header
	line    []byte // the header as it is written
	payload []byte // the caller's
	end     []byte
	signed  bool // the digest is in the header
	bufs    [3][]byte
}

// begin readies a record. The header has its length from the start: a digest has one, too.
func (d *draft) begin(h header, payload []byte) {
	h.length = int64(len(payload))
	d.header, d.payload, d.signed = h, payload, false
	if d.end == nil {
		d.end = []byte(endMark)
	}
	d.line = d.header.appendTo(d.line[:0])
	if len(payload) < overlap {
		d.sign()
	}
}

// forget lets go of the caller's payload.
func (d *draft) forget() { d.payload, d.bufs = nil, [3][]byte{} }

func (d *draft) size() int64 { return int64(len(d.line) + len(d.payload) + len(d.end)) }

func (d *draft) sign() {
	d.header.payload = digestOf(d.payload)
	d.line = d.header.appendTo(d.line[:0])
	d.signed = true
}

// write fills a file: with one call, or, where the payload is large, with the payload first, which the disk then works
// on while the digest for the header is made. Nothing is read of a file that is not whole: its name comes later.
func (d *draft) write(sys fsys, fd int) error {
	if d.signed {
		d.bufs = [3][]byte{d.line, d.payload, d.end}
		return writeAll(sys, fd, d.bufs[:], 0)
	}
	d.bufs = [3][]byte{d.payload, d.end}
	if err := writeAll(sys, fd, d.bufs[:2], int64(len(d.line))); err != nil {
		return err
	}
	if err := sys.hurry(fd); err != nil {
		return err
	}
	d.sign()
	d.bufs = [3][]byte{d.line}
	return writeAll(sys, fd, d.bufs[:1], 0)
}

// writeAll hands the buffers over, and goes on where the system stopped short. It changes bufs.
func writeAll(sys fsys, fd int, bufs [][]byte, off int64) error {
	for len(bufs) > 0 {
		n, err := sys.writeAt(fd, bufs, off)
		if err == nil && n == 0 {
			err = io.ErrNoProgress
		}
		if err != nil {
			return err
		}
		off += int64(n)
		for len(bufs) > 0 && n >= len(bufs[0]) {
			n -= len(bufs[0])
			bufs = bufs[1:]
		}
		if len(bufs) > 0 {
			bufs[0] = bufs[0][n:]
		}
	}
	return nil
}

// hintOf is a checksum that takes a fifteenth of the time of a digest. It only ever says that two payloads differ.
func hintOf(payload []byte) uint32 { return crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)) }
