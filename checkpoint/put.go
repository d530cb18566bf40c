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
