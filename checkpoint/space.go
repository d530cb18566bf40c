// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"fmt"
	"slices"
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

// space finds room for a record, below the limit of the store and on a disk that is full. It takes it from old
// generations, and from the ballast.
type space struct {
	dir     *directory
	books   *books
	ballast ballast
}

// reserveBytes books the bytes of a file to come against the quota.
func (s *space) reserveBytes(size int64) error {
	if s.books.bytes.bookBytes(size) {
		return nil
	}
	s.trimAll()
	if s.books.bytes.bookBytes(size) {
		return nil
	}
	bytes := &s.books.bytes
	return fmt.Errorf("%w: the store has %d bytes and may have %d, the record needs %d",
		ErrFull, bytes.usedBytes(), bytes.limit, size)
}

// makeRoom gives the disk back what the store can do without, and reports whether that was anything.
func (s *space) makeRoom() bool {
	trimmed := s.trimAll()
	return s.ballast.releaseBallast() || trimmed
}

// trimStream drops the generations of a stream that are neither among the newest to keep nor among the newest two
// verified.
func (s *space) trimStream(st *stream, keep int) (dropped bool) {
	for {
		s.books.mu.Lock()
		gen, ok := st.surplus(keep)
		var g generation
		if ok {
			g, _ = st.drop(gen)
		}
		s.books.mu.Unlock()
		if !ok {
			return dropped
		}
		if err := s.dir.sys.unlink(st.in.fd, recordFile(st.name.base, gen)); err != nil && !isGone(err) {
			s.books.mu.Lock()
			st.add(g) // still there; the next Put tries again
			s.books.mu.Unlock()
			return dropped
		}
		s.books.bytes.refundBytes(g.size)
		dropped = true
	}
}

// trimAll trims every stream to the least that it must have.
func (s *space) trimAll() (dropped bool) {
	var all []*stream
	s.books.mu.Lock()
	s.books.visitStreams(func(st *stream) {
		if !st.unsure { // which of its generations are durable is not known
			all = append(all, st)
		}
	})
	s.books.mu.Unlock()
	for _, st := range all {
		dropped = s.trimStream(st, minGenerations) || dropped
	}
	return dropped
}

// ballast is the file that is given back when the disk is full, so that a pending record still fits.
type ballast struct {
	dir   *directory
	bytes *account
	size  int64 // below 0 = there is to be none

	mu   sync.Mutex
	held bool // the file is there, or is being made
}

// openBallast takes in the ballast that is there, or makes it, at Open.
func (b *ballast) openBallast() {
	info, err := b.dir.sys.statAt(b.dir.root.fd, ballastFile)
	if err == nil && info.regular && info.size == b.size {
		b.held = true
		b.bytes.addBytes(info.size)
		return
	}
	if err == nil {
		_ = b.dir.sys.unlink(b.dir.root.fd, ballastFile)
	}
	b.makeBallast()
}

// restoreBallast makes the ballast again when there is plenty of room: taking the last of it would only have to be
// undone.
func (b *ballast) restoreBallast() {
	b.mu.Lock()
	held := b.held
	b.mu.Unlock()
	if held || b.size < 0 {
		return
	}
	if room, err := b.dir.sys.room(b.dir.root.fd); err == nil && room > 4*b.size {
		b.makeBallast()
	}
}

// makeBallast makes the file, unless there is to be none, the limit forbids it, or another call makes it.
func (b *ballast) makeBallast() {
	if b.size < 0 || !b.bytes.bookBytes(b.size) {
		return
	}
	b.mu.Lock()
	mine := !b.held
	b.held = true
	b.mu.Unlock()
	if mine && b.fillBallast() == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes.refundBytes(b.size)
	b.held = b.held && !mine
}

func (b *ballast) fillBallast() error {
	fd, err := b.dir.sys.openAt(b.dir.root.fd, ballastFile, openNew)
	if err != nil {
		return err
	}
	err = b.dir.sys.chmod(fd, permFile)
	if err == nil {
		err = b.dir.sys.allocate(fd, b.size)
	}
	if closing := b.dir.sys.close(fd); err == nil {
		err = closing
	}
	if err != nil {
		_ = b.dir.sys.unlink(b.dir.root.fd, ballastFile)
	}
	return err
}

// releaseBallast gives the file back to the disk, and reports whether it did.
func (b *ballast) releaseBallast() bool {
	b.mu.Lock()
	held := b.held
	b.held = false
	b.mu.Unlock()
	if !held || b.dir.sys.unlink(b.dir.root.fd, ballastFile) != nil {
		return false
	}
	b.bytes.refundBytes(b.size)
	return true
}

// evidence keeps what is damaged: it reports it, renames it, so that no one reads it again, and bounds what is kept.
type evidence struct {
	dir    *directory
	books  *books
	report func(Damage)
}

// reportDamage reports damage, once a generation.
func (e *evidence) reportDamage(st *stream, gen uint64, f *flaw) Damage {
	d := Damage{Stream: st.name.String(), Generation: gen, Reason: f.reason, Err: f.err}
	if e.books.markFlawed(st, gen, f) {
		e.report(d)
	}
	return d
}

// setAside renames a file that can never become good again, so that it is kept as evidence and its number stays taken.
// What may be good (unreadable for now), or is not ours to touch, stays where it is. Where the disk refuses, so does a
// damaged file: it is found damaged again.
func (e *evidence) setAside(st *stream, gen uint64, f *flaw) {
	switch f.reason {
	case reasonTooNew, reasonUntrusted, reasonUnreadable:
		return
	case reasonMissing:
		e.books.forgetGeneration(st, gen)
		return
	}
	to := asideFile(st.name.base, gen, f.reason)
	if err := e.dir.sys.rename(st.in.fd, recordFile(st.name.base, gen), to); err != nil {
		return
	}
	e.books.mu.Lock()
	if g, ok := st.drop(gen); ok {
		st.addAside(aside{gen: gen, size: g.size, reason: f.reason})
	}
	e.books.mu.Unlock()
	e.boundStream(st)
	e.boundAll()
}

// boundStream keeps the newest few of a stream's files that were set aside.
func (e *evidence) boundStream(st *stream) {
	for {
		e.books.mu.Lock()
		if len(st.aside) <= asideStream {
			e.books.mu.Unlock()
			return
		}
		i := surplus(st.aside)
		a := st.aside[i]
		st.aside = slices.Delete(st.aside, i, i+1)
		e.books.bytes.refundBytes(a.size)
		e.books.mu.Unlock()
		_ = e.dir.sys.unlink(st.in.fd, asideFile(st.name.base, a.gen, a.reason)) // the next Open finds it again
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
func (e *evidence) boundAll() {
	for {
		st, a, ok := e.books.takeHeaviest()
		if !ok {
			return
		}
		e.dir.truncateFile(st.in.fd, asideFile(st.name.base, a.gen, a.reason))
	}
}
