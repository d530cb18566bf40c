// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// recovery brings what the directory holds and what the books say together: names first, then contents, then what no
// Put confirmed.
type recovery struct {
	dir      *directory
	books    *books
	evidence *evidence
	space    *space
	reader   *recordReader
	writer   *recordWriter
}

// recoverStore recovers the whole store, at Open. It never removes a record that verifies, so it may be killed anywhere
// and run again.
func (r *recovery) recoverStore() error {
	names, err := r.dir.sys.list(r.dir.root.fd)
	if err != nil {
		return err
	}
	r.adoptFiles(r.dir.root, names)
	r.examineFolder(r.dir.root)
	slices.Sort(names)
	for _, dir := range names {
		info, err := r.dir.sys.statAt(r.dir.root.fd, dir)
		if checkDir(dir) != nil || err == nil && !info.dir {
			continue // a stranger's, or one of ours with another meaning
		}
		if f := r.takeIn(dir); f.err != nil {
			r.evidence.report(Damage{Stream: dir, Reason: reasonUnreadable, Err: f.err})
		}
	}
	r.space.ballast.openBallast()
	if r.books.bytes.usedBytes() > r.books.bytes.limit { // what a crash kept had been dropped
		r.space.trimAll()
	}
	return nil
}

// takeIn takes in a directory of streams. One that can not be read costs its own streams only, until it can be.
func (r *recovery) takeIn(dir string) *folder {
	f, names, err := r.dir.openStreams(dir)
	if err != nil {
		f = newFolder(dir, -1, fileID{}, r.dir.sys)
		f.err = fmt.Errorf("directory %q: %w", dir, err)
	} else {
		r.adoptFiles(f, names)
	}
	r.books.addFolder(f)
	r.examineFolder(f)
	return f
}

// adoptFiles takes in the files of one directory by their names. What is left of a Put that was killed is removed. The
// fsync makes the entries durable that a killed Put had not come to; where it fails, no record counts as confirmed.
func (r *recovery) adoptFiles(f *folder, names []string) {
	for _, file := range names {
		if strings.HasPrefix(file, tempPrefix) {
			_ = r.dir.sys.unlink(f.fd, file) // where that fails, the next Open does it
			continue
		}
		if floor, ok := strings.CutPrefix(file, floorPrefix); ok {
			if gen, ok := parseGen(floor); ok {
				f.floor = max(f.floor, gen)
			}
		}
		if p, ok := parseFile(file); ok {
			r.adoptFile(f, p, file)
		}
	}
	if len(f.streams) == 0 || f.barrier.wait() == nil {
		return
	}
	for _, st := range f.streams {
		st.unsure = true
	}
}

// adoptFile enters one file into the books. It does not read it.
func (r *recovery) adoptFile(f *folder, p fileName, file string) {
	st := f.stream(p.base)
	if p.kind == kindUnsure {
		st.unsure, st.marked = true, true
		return
	}
	info, err := r.dir.sys.statAt(f.fd, file)
	if isGone(err) {
		return
	}
	size := info.size // 0 where the system does not say; reading will tell
	r.books.bytes.addBytes(size)
	if p.kind == kindRecord {
		st.add(generation{gen: p.gen, size: size})
		return
	}
	st.addAside(aside{gen: p.gen, size: size, reason: p.reason})
}

// examineFolder verifies every record of a directory, and confirms what was not.
func (r *recovery) examineFolder(f *folder) {
	var buf []byte
	for _, st := range r.books.sortStreams(f) {
		buf = r.verifyStream(st, buf)
		r.evidence.boundStream(st)
	}
	r.evidence.boundAll()
	r.confirmFolder(f)
}

// verifyStream reads every generation of a stream.
func (r *recovery) verifyStream(st *stream, buf []byte) []byte {
	for _, g := range r.books.copyGenerations(st) {
		h, payload, grown, f := r.reader.load.load(st.in.fd, st.name, g.gen, buf)
		buf = grown
		if f != nil {
			r.evidence.reportDamage(st, g.gen, f)
			r.evidence.setAside(st, g.gen, f)
			continue
		}
		r.books.markVerified(st, g.gen, h.payload, hintOf(payload))
	}
	return buf
}

// confirmFolder writes the newest record of each stream again whose last Put was not confirmed: only the success of a
// fresh generation shows what the disk holds. Where that fails, the stream stays unsure, and readable.
func (r *recovery) confirmFolder(f *folder) {
	ctx := context.Background() //nolint:forbidigo // Open has none, and what it reads is bounded
	for _, st := range r.books.sortStreams(f) {
		if !st.marked || len(st.gens) == 0 || st.gens[0].is(reasonTooNew) {
			continue
		}
		rec, err := r.reader.readNewest(ctx, st)
		if err != nil || st.take(ctx) != nil {
			continue
		}
		_ = r.writer.commitRecord(ctx, st, rec.Payload, hintOf(rec.Payload)) // st.unsure keeps the failure
		st.release()
	}
}

// tree finds the streams of the store, and makes the directories that they are in. One directory is made, or taken in
// again, at a time.
type tree struct {
	dir      *directory
	books    *books
	space    *space
	recovery *recovery
	turn     chan struct{} // holds one token for the length of that
}

// findStream returns the stream of a name where it is known, and nil otherwise.
func (t *tree) findStream(ctx context.Context, n name) (*stream, error) {
	f, err := t.findFolder(ctx, n.dir)
	if f == nil || err != nil {
		return nil, err
	}
	return t.books.findStream(f, n.base), nil
}

// findFolder returns a directory of the store, nil where it is not there. One that could not be taken in is tried
// again.
func (t *tree) findFolder(ctx context.Context, dir string) (*folder, error) {
	f := t.books.findFolder(dir)
	if f == nil || f.err == nil {
		return f, nil
	}
	if err := t.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer t.endTurn()
	if f = t.books.findFolder(dir); f.err != nil {
		f = t.recovery.takeIn(dir)
	}
	return f, f.err
}

// enterStream returns the stream of a name, and makes its directory where that is not there.
func (t *tree) enterStream(ctx context.Context, n name) (*stream, error) {
	f, err := t.findFolder(ctx, n.dir)
	if f == nil && err == nil {
		f, err = t.enterFolder(ctx, n.dir)
	}
	if err != nil {
		return nil, err
	}
	return t.books.enterStream(f, n.base), nil
}

// enterFolder makes a directory, unless another call just did.
func (t *tree) enterFolder(ctx context.Context, dir string) (*folder, error) {
	if err := t.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer t.endTurn()
	if f := t.books.findFolder(dir); f != nil {
		return f, f.err
	}
	f, err := t.makeFolder(dir)
	if err != nil {
		return nil, err
	}
	t.books.addFolder(f)
	return f, nil
}

// makeFolder makes a directory of streams. Its entry is durable before it holds a record.
func (t *tree) makeFolder(dir string) (*folder, error) {
	if err := t.dir.checkReady(t.dir.root); err != nil {
		return nil, err
	}
	fd, err := t.dir.makeDir(t.dir.root.fd, dir)
	if isFull(err) && t.space.makeRoom() {
		fd, err = t.dir.makeDir(t.dir.root.fd, dir)
	}
	if err != nil {
		return nil, err
	}
	info, err := t.dir.sys.stat(fd)
	f := newFolder(dir, fd, info.id, t.dir.sys)
	if err == nil {
		err = f.open()
	}
	if err == nil {
		if err = t.dir.root.barrier.wait(); err != nil {
			// The next try has to make it anew: an fsync that failed is not repeated.
			_ = t.dir.sys.rmdir(t.dir.root.fd, dir)
		}
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// takeTurn waits for the turn to make a directory or to take one in; endTurn ends it.
func (t *tree) takeTurn(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *tree) endTurn() { <-t.turn }
