// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

const perPoint = 16384

// explorer walks through the states of a Crash.
type explorer struct {
	Crash
	report Report
	seen   map[uint64]int // by disk and notes: how deep was looked from there
}

// choice is one state after a crash: the point in the record, the changes of names that are kept, the bodies of files.
type choice struct {
	point  int
	mask   uint64
	digits []int
}

func (c choice) String() string {
	text := fmt.Sprintf("%d.%x", c.point, c.mask)
	for _, d := range c.digits {
		text += "." + strconv.Itoa(d)
	}
	return text
}

func parseChoice(text string) (c choice, err error) {
	fields := strings.Split(text, ".")
	if len(fields) < 2 {
		return c, fmt.Errorf("has no two numbers")
	}
	if c.point, err = strconv.Atoi(fields[0]); err != nil {
		return c, err
	}
	if c.mask, err = strconv.ParseUint(fields[1], 16, 64); err != nil {
		return c, err
	}
	for _, f := range fields[2:] {
		d, err := strconv.Atoi(f)
		if err != nil {
			return c, err
		}
		c.digits = append(c.digits, d)
	}
	return c, nil
}

// story looks at the crashes at every point of a disk's record.
func (e *explorer) story(d *Disk, noted []any, notes uint64, depth int, path string) error {
	m := d.start
	for i, ev := range d.log {
		if ev.kind == evNote {
			noted = append(slices.Clip(noted), ev.note)
			notes = hashOf(notes+1, fmt.Sprint(ev.note))
		}
		if !m.apply(ev) {
			continue
		}
		if err := e.point(d, m, i, noted, notes, depth, path); err != nil {
			return err
		}
	}
	return nil
}

// point looks at the states of one point: at all of them, or at a sample.
func (e *explorer) point(d *Disk, m *model, at int, noted []any, notes uint64, depth int, path string) error {
	limit := e.PerPoint
	if limit == 0 {
		limit = perPoint
	}
	n := 0
	for _, dir := range m.dirs {
		n += dir.doubtful()
	}
	rnd := rand.New(rand.NewPCG(e.Seed, hashOf(uint64(at), path)))
	v := visit{explorer: e, d: d, m: m, at: at, noted: noted, notes: notes, depth: depth, path: path}
	if n < bits.Len(uint(limit)) {
		for mask := range uint64(1) << n {
			if err := v.bodies(mask, max(1, limit>>n), rnd); err != nil {
				return err
			}
		}
	} else {
		masks := []uint64{0, 1<<min(n, 63) - 1}
		for range limit - len(masks) {
			masks = append(masks, rnd.Uint64()&(1<<min(n, 63)-1))
		}
		for _, mask := range masks {
			if err := v.bodies(mask, 1, rnd); err != nil {
				return err
			}
		}
		v.sampled = true
	}
	if v.sampled {
		e.report.Sampled++
	}
	return nil
}

// visit is the walk through the states of one point.
type visit struct {
	*explorer
	d       *Disk
	m       *model
	at      int
	noted   []any
	notes   uint64
	depth   int
	path    string
	sampled bool
}

// bodies goes through the contents that the files of a choice of names may have, at most so many.
func (v *visit) bodies(mask uint64, limit int, rnd *rand.Rand) error {
	im := v.m.choose(mask)
	digits := make([]int, len(im.torn))
	all := 1
	for _, t := range im.torn {
		if all *= len(t.contents()); all > limit {
			break
		}
	}
	if all > limit {
		v.sampled = true
		for range limit {
			for k, t := range im.torn {
				digits[k] = rnd.IntN(len(t.contents()))
			}
			if err := v.state(im, mask, digits); err != nil {
				return err
			}
		}
		return nil
	}
	for {
		if err := v.state(im, mask, digits); err != nil {
			return err
		}
		if !next(digits, im.torn) {
			return nil
		}
	}
}

// next counts one up, and reports whether there was anything to count.
func next(digits []int, torn []*inode) bool {
	for k := range digits {
		if digits[k]++; digits[k] < len(torn[k].contents()) {
			return true
		}
		digits[k] = 0
	}
	return false
}

// state looks at one state, unless one like it was looked at.
func (v *visit) state(im *image, mask uint64, digits []int) error {
	v.report.States++
	if v.path != "" {
		v.report.Nested++
	}
	key := hashOf(im.hash(digits), strconv.FormatUint(v.notes, 36))
	if v.seen[key] >= v.depth {
		return nil
	}
	v.seen[key] = v.depth
	v.report.Checked++
	d := im.disk(digits, v.depth > 1)
	c := choice{v.at, mask, digits}
	if err := v.Check(d, v.noted); err != nil {
		return v.broken(v.path+c.String(), v.m.tell(v.d, c), err)
	}
	if v.depth == 1 || len(d.log) == 0 {
		return nil
	}
	return v.story(d, v.noted, v.notes, v.depth-1, v.path+c.String()+"/")
}

func (e *explorer) broken(state, story string, err error) error {
	if err == nil {
		return nil
	}
	return &CrashError{State: state, Story: story, Err: err}
}

// image is a choice of names: the directories as they are then, and the files with more than one body.
type image struct {
	m     *model
	names map[*inode]map[string]*inode
	torn  []*inode
	sum   uint64     // of what is sure
	open  [][]uint64 // of each torn file, where it lies
}

// choose keeps the changes of names whose bits are set, those of the directory that was made first in the lowest bits.
func (m *model) choose(mask uint64) *image {
	im := &image{m: m, names: make(map[*inode]map[string]*inode, len(m.dirs))}
	for _, dir := range m.dirs {
		im.names[dir] = dir.kept(mask)
		mask >>= dir.doubtful()
	}
	im.walk(m.root, 0)
	return im
}

// walk collects what can be reached.
func (im *image) walk(dir *inode, at uint64) {
	im.sum += hashOf(at, "/")
	if im.dirty(dir) {
		for _, name := range slices.Sorted(maps.Keys(im.names[dir])) { // so that torn files have an order
			im.take(im.names[dir][name], hashOf(at+1, name))
		}
		return
	}
	for name, i := range im.names[dir] {
		im.take(i, hashOf(at+1, name))
	}
}

// dirty reports whether the order of a directory matters: it has files with more than one body, or directories.
func (im *image) dirty(dir *inode) bool {
	for _, i := range im.names[dir] {
		if i.dir || len(i.writes) > 0 {
			return true
		}
	}
	return false
}

func (im *image) take(i *inode, at uint64) {
	if i.dir {
		im.walk(i, at)
		return
	}
	if bodies := i.contents(); len(bodies) == 1 {
		im.sum += spread(at, bodies[0].hash)
		return
	}
	k := slices.Index(im.torn, i)
	if k < 0 {
		k = len(im.torn)
		im.torn, im.open = append(im.torn, i), append(im.open, nil)
	}
	im.open[k] = append(im.open[k], at)
}

// spread mixes two hashes, so that sums of such say which belong together.
func spread(a, b uint64) uint64 {
	h := (a ^ bits.RotateLeft64(b, 23)) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

func (im *image) hash(digits []int) uint64 {
	sum := im.sum
	for k, places := range im.open {
		for _, at := range places {
			sum += spread(at, im.torn[k].bodies[digits[k]].hash)
		}
	}
	return sum
}

// disk makes the disk of a state, which goes on recording or not.
func (im *image) disk(digits []int, record bool) *Disk {
	d := &Disk{quiet: !record}
	made := map[*inode]*node{}
	d.root = im.build(d, im.m.root, digits, made)
	if record {
		d.start = modelOf(d.root)
	}
	return d
}

func (im *image) build(d *Disk, i *inode, digits []int, made map[*inode]*node) *node {
	if n := made[i]; n != nil {
		return n
	}
	n := d.make(i.dir, i.mode)
	n.id, d.ids = i.id, max(d.ids, i.id)
	made[i] = n
	if !i.dir {
		n.data, n.shared = i.contents()[0].data, true
		if k := slices.Index(im.torn, i); k >= 0 {
			n.data = i.contents()[digits[k]].data
		}
		return n
	}
	for name, entry := range im.names[i] {
		n.entries[name] = im.build(d, entry, digits, made)
	}
	return n
}

// tell describes a state for people.
func (m *model) tell(d *Disk, c choice) string {
	var b strings.Builder
	b.WriteString("the calls that changed something, up to the crash:")
	for _, e := range d.log[:c.point+1] {
		if what := e.String(); what != "" {
			b.WriteString("\n  " + what)
		}
	}
	mask := c.mask
	for _, dir := range m.dirs {
		for _, ch := range dir.changes {
			if ch.sure {
				continue
			}
			fmt.Fprintf(&b, "\n%s: %s", map[bool]string{true: "kept", false: "lost"}[mask&1 != 0], ch.what)
			mask >>= 1
		}
	}
	im := m.choose(c.mask)
	b.WriteString("\non the disk:")
	im.list(&b, m.root, c.digits, "/")
	return b.String()
}

func (im *image) list(b *strings.Builder, dir *inode, digits []int, at string) {
	for _, name := range slices.Sorted(maps.Keys(im.names[dir])) {
		i := im.names[dir][name]
		if i.dir {
			fmt.Fprintf(b, "\n  %s%s/", at, name)
			im.list(b, i, digits, at+name+"/")
			continue
		}
		body := i.contents()[0]
		if k := slices.Index(im.torn, i); k >= 0 {
			body = i.contents()[digits[k]]
		}
		fmt.Fprintf(b, "\n  %s%s (%d bytes, %s)", at, name, len(body.data), body.what)
	}
}

func (e *event) String() string {
	switch e.kind {
	case evChange:
		return e.what
	case evWrite:
		return fmt.Sprintf("write %d bytes at %d of file %d", len(e.data), e.off, e.n.id)
	case evResize:
		return fmt.Sprintf("truncate file %d to %d", e.n.id, e.off)
	case evSync:
		return fmt.Sprintf("sync file %d", e.n.id)
	case evLost:
		return fmt.Sprintf("sync file %d, which failed", e.n.id)
	case evNote:
		return fmt.Sprintf("note %v", e.note)
	default:
		return ""
	}
}
