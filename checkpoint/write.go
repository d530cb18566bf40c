// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

// tries is how many new files are written after errors of the disk, before Put gives up.
const tries = 3

// recordWriter writes records. The order is the promise: the content of a temporary file is durable before it takes the
// name of its generation, and that name is durable before the record is acknowledged.
type recordWriter struct {
	dir     *directory
	books   *books
	space   *space
	author  string // what records carry as their writer
	machine string // and as their machine
	keep    int    // generations of a stream

	pause func(ctx context.Context, try int) error // between two tries after an error of the disk
	temps atomic.Uint64                            // makes names of temporary files
}

// putRecord makes payload the newest record of a stream, unless that is so. The stream's turn is the caller's.
func (w *recordWriter) putRecord(ctx context.Context, st *stream, payload []byte) error {
	if err := w.dir.checkReady(st.in); err != nil {
		return err
	}
	newest, err := w.books.findStanding(st)
	if err != nil {
		return err
	}
	hint := hintOf(payload)
	if newest.verified && newest.hint == hint && newest.digest == digestOf(payload) {
		return nil
	}
	return w.commitRecord(ctx, st, payload, hint)
}

// commitRecord writes the next generation. The stream's turn is the caller's.
func (w *recordWriter) commitRecord(ctx context.Context, st *stream, payload []byte, hint uint32) error {
	gen := w.books.nextGeneration(st)
	if gen > maxGeneration {
		return errors.New("no generation is left")
	}
	d := &st.draft
	d.begin(header{stream: st.name.full, generation: gen, writer: w.author, machine: w.machine}, payload)
	defer d.forget()
	if err := w.space.reserveBytes(d.size()); err != nil {
		return err
	}
	temp, err := w.writeFile(ctx, st)
	if err != nil && isFull(err) && w.space.makeRoom() {
		temp, err = w.writeFile(ctx, st)
	}
	if err != nil {
		w.books.bytes.refundBytes(d.size())
		return err
	}
	g := generation{gen: gen, size: d.size(), digest: d.header.payload, hint: hint, verified: true}
	return w.publishFile(ctx, st, temp, g)
}

// writeFile writes a temporary file and makes its content durable. After an error of the disk it starts again with a
// new one: the system reports such an error once, and a second fsync of the same file would prove nothing.
func (w *recordWriter) writeFile(ctx context.Context, st *stream) (temp string, err error) {
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		temp = tempPrefix + strconv.FormatUint(w.temps.Add(1), 10)
		err = w.writeOnce(st, temp)
		if err == nil {
			return temp, nil
		}
		if !isTaken(err) {
			_ = w.dir.sys.unlink(st.in.fd, temp) // or the next Open does it
		}
		if try == tries || !isMedia(err) && !isTaken(err) {
			return "", err
		}
		if stop := w.pause(ctx, try); stop != nil {
			return "", fmt.Errorf("%w, after %w", stop, err)
		}
	}
}

// writeOnce writes the stream's draft to a new file and fsyncs it, once.
func (w *recordWriter) writeOnce(st *stream, temp string) error {
	fd, err := w.dir.sys.openAt(st.in.fd, temp, openNew)
	if err != nil {
		return err
	}
	err = w.dir.sys.chmod(fd, permFile) // before the first byte, whatever the umask
	if err == nil {
		err = st.draft.write(w.dir.sys, fd)
	}
	if err == nil {
		err = w.dir.sys.sync(fd)
	}
	if closing := w.dir.sys.close(fd); err == nil {
		err = closing // some file systems say only now that there was no room
	}
	return err
}

// publishFile gives a durable file its number, which is the commit, and makes the number durable.
func (w *recordWriter) publishFile(ctx context.Context, st *stream, temp string, g generation) error {
	file := recordFile(st.name.base, g.gen)
	err := ctx.Err()
	if err == nil {
		if err = w.dir.sys.rename(st.in.fd, temp, file); isMedia(err) {
			return w.enterUnconfirmed(st, temp, g, err)
		}
	}
	if err != nil {
		_ = w.dir.sys.unlink(st.in.fd, temp)
		w.books.bytes.refundBytes(g.size)
		if isTaken(err) {
			w.books.burnNumber(st, g.gen)
		}
		return err
	}
	if err := st.in.barrier.wait(); err != nil {
		return w.enterUnconfirmed(st, temp, g, err)
	}
	w.acknowledgeRecord(st, g)
	return nil
}

// acknowledgeRecord enters a durable generation, then drops what it made surplus. The next fsync of the directory
// covers that.
func (w *recordWriter) acknowledgeRecord(st *stream, g generation) {
	w.books.mu.Lock()
	st.add(g)
	unmark := st.marked
	st.unsure, st.marked = false, false
	w.books.mu.Unlock()
	if unmark {
		_ = w.dir.sys.unlink(st.in.fd, unsureFile(st.name.base)) // one left behind costs one write at the next Open
	}
	w.space.trimStream(st, w.keep)
	w.space.ballast.restoreBallast()
}

// enterUnconfirmed enters a generation that may or may not be there after a crash. A mark in the directory tells the
// next Open, as what it reads from the cache would look good. The mark needs no fsync: it is lost only together with
// the cache.
func (w *recordWriter) enterUnconfirmed(st *stream, temp string, g generation, cause error) error {
	_, err := w.dir.sys.statAt(st.in.fd, recordFile(st.name.base, g.gen))
	gone := isGone(err)
	g.verified, g.doubtful = false, true
	w.books.mu.Lock()
	if gone {
		w.books.bytes.refundBytes(g.size)
	} else {
		st.add(g) // where the system does not say, reading will tell
	}
	st.top = max(st.top, g.gen)
	st.unsure = true
	marked := st.marked
	w.books.mu.Unlock()
	if gone {
		_ = w.dir.sys.unlink(st.in.fd, temp)
	}
	if !marked {
		w.markUnsure(st)
	}
	return indeterminate(fmt.Errorf("generation %d: %w", g.gen, cause))
}

// markUnsure makes the file that tells the next Open. Without one, Open trusts what it reads.
func (w *recordWriter) markUnsure(st *stream) {
	fd, err := w.dir.sys.openAt(st.in.fd, unsureFile(st.name.base), openNew)
	if err != nil {
		return
	}
	w.dir.sys.close(fd)
	w.books.mu.Lock()
	st.marked = true
	w.books.mu.Unlock()
}

// pauseFor waits 10 ms, then 100 ms, before the disk is tried again.
func pauseFor(ctx context.Context, try int) error {
	wait := 10 * time.Millisecond
	if try > 1 {
		wait = 100 * time.Millisecond
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// removal is what Delete does, in this order: the files in first, an fsync, then last, an fsync.
type removal struct {
	first []string
	last  string // "" = nothing is there
	whole bool   // last verifies
}

// remover takes streams away. What is read last goes last, so that no older record comes back.
type remover struct {
	dir   *directory
	books *books
}

// removeStream takes away everything but the record that reading returns, makes that durable, and then takes that one
// away. The stream's turn is the caller's.
func (m *remover) removeStream(st *stream) error {
	if err := m.dir.checkReady(st.in); err != nil {
		return err
	}
	r, err := m.planRemoval(st)
	if err != nil {
		return err
	}
	for _, file := range r.first {
		if err := m.dir.sys.unlink(st.in.fd, file); err != nil && !isGone(err) {
			return err
		}
	}
	if len(r.first) > 0 {
		if err := st.in.barrier.wait(); err != nil {
			return err
		}
	}
	floor, err := m.removeLast(st, r)
	if err != nil {
		return err
	}
	unsure := m.books.clearStream(st)
	if r.last == "" && !unsure {
		return nil
	}
	if err := st.in.barrier.wait(); err != nil {
		m.books.vanishStream(st)
		return indeterminate(err)
	}
	m.finishRemoval(st, floor)
	return nil
}

// planRemoval sorts the files of a stream. It refuses what a newer version wrote.
func (m *remover) planRemoval(st *stream) (removal, error) {
	m.books.mu.Lock()
	defer m.books.mu.Unlock()
	var r removal
	for _, g := range st.gens {
		if g.is(reasonTooNew) {
			return r, &Damage{Stream: st.name.String(), Generation: g.gen, Reason: reasonTooNew, Err: g.flaw.err}
		}
		file := recordFile(st.name.base, g.gen)
		if g.flaw == nil && r.last == "" {
			r.last, r.whole = file, true
			continue
		}
		r.first = append(r.first, file)
	}
	for _, a := range st.aside {
		r.first = append(r.first, asideFile(st.name.base, a.gen, a.reason))
	}
	if r.last == "" && len(r.first) > 0 {
		r.first, r.last = r.first[1:], r.first[0]
	}
	return r, nil
}

// removeLast takes the last file away. A whole record becomes the mark of the highest generation in its directory, by
// one rename, which needs no room: so no number comes back.
func (m *remover) removeLast(st *stream, r removal) (floor uint64, err error) {
	if r.last == "" {
		return 0, nil
	}
	m.books.mu.Lock()
	top, old := st.top, st.in.floor
	m.books.mu.Unlock()
	switch {
	case r.whole && top > old:
		err = m.dir.sys.rename(st.in.fd, r.last, floorFile(top))
		if isTaken(err) {
			// The record of another stream with that number is the mark already; once that is durable, ours may go.
			if err = st.in.barrier.wait(); err == nil {
				err = m.dir.sys.unlink(st.in.fd, r.last)
			}
		}
		floor = top
	case top > old:
		floor = m.makeFloor(st.in, top)
		err = m.dir.sys.unlink(st.in.fd, r.last)
	default:
		err = m.dir.sys.unlink(st.in.fd, r.last)
	}
	if isMedia(err) {
		if _, gone := m.dir.sys.statAt(st.in.fd, r.last); isGone(gone) {
			m.books.vanishStream(st)
		}
		return 0, indeterminate(err)
	}
	if isGone(err) {
		return 0, nil
	}
	return floor, err
}

// makeFloor makes the mark where no whole record can become it. On a full disk it goes without: then nothing of the
// stream is left that the number could be taken for.
func (m *remover) makeFloor(f *folder, gen uint64) uint64 {
	fd, err := m.dir.sys.openAt(f.fd, floorFile(gen), openNew)
	if err != nil {
		return 0
	}
	m.dir.sys.close(fd)
	return gen
}

// finishRemoval is housekeeping: what fails here is done by a later call, or does no harm.
func (m *remover) finishRemoval(st *stream, floor uint64) {
	m.books.mu.Lock()
	old, marked := st.in.floor, st.marked
	st.in.floor = max(old, floor)
	st.marked = false
	m.books.mu.Unlock()
	if floor != 0 {
		m.dir.truncateFile(st.in.fd, floorFile(floor)) // the payload of what is deleted has no business there
	}
	if floor != 0 && old != 0 && floor > old {
		_ = m.dir.sys.unlink(st.in.fd, floorFile(old))
	}
	if marked {
		_ = m.dir.sys.unlink(st.in.fd, unsureFile(st.name.base))
	}
}
