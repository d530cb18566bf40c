// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest

import (
	"bytes"
	"io/fs"
	"maps"
	"slices"
)

// event is one line of a disk's record.
type event struct {
	kind eventKind
	what string // evChange, for people

	from     *node // evChange: the entry that goes; nil = none
	fromName string
	to       *node // evChange: the entry that comes; nil = none
	toName   string

	n    *node // what it is about
	mode fs.FileMode
	data []byte // evWrite
	off  int64  // evWrite; the size in evResize
	note any
}

type eventKind int

const (
	evChange eventKind = iota // of names
	evWrite
	evResize
	evMode
	evSync // that succeeded
	evLost // a sync that failed
	evNote
)

// model is a disk as it would be after a power cut: what is durable, and what may or may not be.
type model struct {
	root *inode
	of   map[*node]*inode
	dirs []*inode // in the order in which they were made
}

// inode is a file or a directory of a model.
type inode struct {
	id   uint64 // as Sys of a FileInfo shows it; a crash does not change it
	dir  bool
	mode fs.FileMode

	// A file: what is on the disk, what was written since the last sync, and the bodies that follow from it.
	stable []byte
	writes []write
	bodies []content

	// A directory: its names on the disk, and what changed since. A change that is sure comes after one that is not.
	names   map[string]*inode
	changes []change
}

type write struct {
	data   []byte
	off    int64
	resize bool
}

// change is what one call does to the names of one directory.
type change struct {
	what  string
	gone  string // a name that goes; "" = none
	comes string // a name that comes; "" = none
	n     *inode
	sure  bool // it was synced, after one that never will be
	lost  bool // its sync failed
}

// modelOf takes everything that is there for durable.
func modelOf(root *node) *model {
	m := &model{of: map[*node]*inode{}}
	m.root = m.adopt(root)
	return m
}

func (m *model) adopt(n *node) *inode {
	i := m.enter(n, n.mode)
	i.stable, n.shared = n.data, true
	for _, name := range slices.Sorted(maps.Keys(n.entries)) {
		i.names[name] = m.adopt(n.entries[name])
	}
	return i
}

func (m *model) enter(n *node, mode fs.FileMode) *inode {
	i := &inode{id: n.id, dir: n.dir, mode: mode}
	m.of[n] = i
	if n.dir {
		i.names = map[string]*inode{}
		m.dirs = append(m.dirs, i)
	}
	return i
}

// apply brings the model one event further and reports whether a crash may find something new.
func (m *model) apply(e event) (news bool) {
	i := m.of[e.n]
	if i == nil && e.n != nil && e.kind != evChange {
		i = m.enter(e.n, e.n.mode) // open, and without a name since before the record began
	}
	switch e.kind {
	case evChange:
		m.change(e)
	case evWrite:
		i.writes, i.bodies = append(i.writes, write{data: e.data, off: e.off}), nil
	case evResize:
		i.writes, i.bodies = append(i.writes, write{off: e.off, resize: true}), nil
	case evMode:
		i.mode = e.mode
	case evSync:
		i.sync()
		return false
	case evLost:
		i.lose()
	case evNote:
	}
	return true
}

func (m *model) change(e event) {
	i := m.of[e.n]
	if i == nil && e.n != nil {
		i = m.enter(e.n, e.mode)
	}
	if e.from == e.to {
		dir := m.of[e.from]
		dir.changes = append(dir.changes, change{what: e.what, gone: e.fromName, comes: e.toName, n: i})
		return
	}
	if e.to != nil {
		dir := m.of[e.to]
		dir.changes = append(dir.changes, change{what: e.what, comes: e.toName, n: i})
	}
	if e.from != nil {
		dir := m.of[e.from]
		dir.changes = append(dir.changes, change{what: e.what, gone: e.fromName})
	}
}

// sync makes durable what was not. A change that was lost stays in doubt, and those after it stay behind it.
func (i *inode) sync() {
	if !i.dir {
		i.stable, i.writes, i.bodies = written(i.stable, i.writes), nil, nil
		return
	}
	kept := i.changes[:0:0]
	for _, c := range i.changes {
		if !c.lost && len(kept) == 0 {
			c.apply(i.names)
			continue
		}
		c.sure = !c.lost
		kept = append(kept, c)
	}
	i.changes = kept
}

// lose forgets what was written, as the system takes it for clean after a failed sync; names that changed stay in doubt
// for ever.
func (i *inode) lose() {
	i.writes, i.bodies = nil, nil
	for k := range i.changes {
		i.changes[k].lost = !i.changes[k].sure
	}
}

func (c *change) apply(names map[string]*inode) {
	if c.gone != "" {
		delete(names, c.gone)
	}
	if c.comes != "" {
		names[c.comes] = c.n
	}
}

// kept gives the names of a directory after a crash that kept those of its doubtful changes whose bits are set.
func (i *inode) kept(mask uint64) map[string]*inode {
	if len(i.changes) == 0 {
		return i.names
	}
	names := maps.Clone(i.names)
	for _, c := range i.changes {
		if !c.sure {
			keep := mask&1 != 0
			mask >>= 1
			if !keep {
				continue
			}
		}
		c.apply(names)
	}
	return names
}

// doubtful is how many changes of a directory a crash may drop.
func (i *inode) doubtful() int {
	n := 0
	for _, c := range i.changes {
		if !c.sure {
			n++
		}
	}
	return n
}

func written(stable []byte, writes []write) []byte {
	if len(writes) == 0 {
		return stable
	}
	data := slices.Clone(stable)
	for _, w := range writes {
		size := max(len(data), int(w.off)+len(w.data))
		if w.resize {
			size = int(w.off)
		}
		for len(data) < size {
			data = append(data, 0)
		}
		data = data[:size]
		copy(data[min(int(w.off), size):], w.data)
	}
	return data
}

// content is one body that a file may have after a crash.
type content struct {
	what string
	data []byte
	hash uint64
}

// contents gives the bodies that a file may have, without those that are equal: what was durable, all that was written,
// the first half of it, and nothing but zeros where something was written.
func (i *inode) contents() []content {
	if i.bodies != nil {
		return i.bodies
	}
	i.bodies = []content{{what: "stable", data: i.stable}}
	if len(i.writes) > 0 {
		whole := written(i.stable, i.writes)
		i.bodies = append(i.bodies, content{what: "new", data: whole}, content{what: "half", data: half(i.stable, whole)},
			content{what: "zeroed", data: written(i.stable, zeroed(i.writes))})
	}
	i.bodies = slices.CompactFunc(i.bodies, func(a, b content) bool { return bytes.Equal(a.data, b.data) })
	for k := range i.bodies {
		i.bodies[k].hash = hashOf(uint64(i.mode), i.bodies[k].data)
	}
	return i.bodies
}

func half(stable, whole []byte) []byte {
	h := len(whole) / 2
	return append(slices.Clone(whole[:h]), stable[min(h, len(stable)):]...)
}

func zeroed(writes []write) []write {
	zeros := slices.Clone(writes)
	for k := range zeros {
		zeros[k].data = make([]byte, len(zeros[k].data))
	}
	return zeros
}

// hashOf is FNV-1a, which is enough to tell states apart that nobody chose to look equal.
func hashOf[T ~string | ~[]byte](start uint64, data T) uint64 {
	h := start ^ 14695981039346656037
	for i := range len(data) {
		h = (h ^ uint64(data[i])) * 1099511628211
	}
	return h
}
