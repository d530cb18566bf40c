// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Record is one generation of a stream, read and verified.
type Record struct {
	Stream     string
	Generation uint64
	Digest     string // "sha256:" and the hex digest of the payload
	Writer     string // [Options.Writer] of whoever wrote it; "-" = not given
	Payload    []byte // the caller's own
	// Damage lists what stood in the way: the files of higher generations that could not be used, now or earlier. Where it is
	// not empty, the record is older than the last one that was acknowledged. The next Put ends that.
	Damage []Damage
}

func digestOf(payload []byte) digest { return sha256.Sum256(payload) }

// recordReader reads the newest record of a stream that verifies, and has what is damaged set aside.
type recordReader struct {
	load     loader
	books    *books
	evidence *evidence
}

// readNewest tries the generations from the newest down.
func (r *recordReader) readNewest(ctx context.Context, st *stream) (Record, error) {
	var damage []Damage
	for below := uint64(maxGeneration + 1); ; {
		if err := ctx.Err(); err != nil {
			return Record{}, err
		}
		gen, found := r.books.findNewest(st, below)
		if !found {
			return Record{}, r.explainAbsence(st, damage)
		}
		h, payload, _, f := r.load.load(st.in.fd, st.name, gen, nil)
		if f == nil {
			return r.makeRecord(st, &h, payload, damage), nil
		}
		if f.reason == reasonTooNew {
			return Record{}, &Damage{Stream: st.name.String(), Generation: gen, Reason: f.reason, Err: f.err}
		}
		if f.reason == reasonMissing && r.isSuperseded(ctx, st, gen) {
			below, damage = maxGeneration+1, nil
			continue
		}
		damage = append(damage, r.evidence.reportDamage(st, gen, f))
		r.evidence.setAside(st, gen, f)
		below = gen
	}
}

// isSuperseded reports whether a generation went away because a Put or a Delete dropped it. Where it still is in the
// books, a Delete may be in the middle: this waits for its end.
func (r *recordReader) isSuperseded(ctx context.Context, st *stream, gen uint64) bool {
	if !r.books.holdsGeneration(st, gen) {
		return true
	}
	if st.take(ctx) != nil {
		return true // reading ends with the context
	}
	defer st.release()
	r.books.mu.Lock()
	g := st.find(gen)
	never := g != nil && g.doubtful
	r.books.mu.Unlock()
	if never {
		r.books.forgetGeneration(st, gen) // the Put of it said that it may not be there
	}
	return g == nil || never
}

func (r *recordReader) makeRecord(st *stream, h *header, payload []byte, damage []Damage) Record {
	return Record{
		Stream: h.stream, Generation: h.generation, Digest: h.payload.String(), Writer: h.writer, Payload: payload,
		Damage: r.books.mergeDamage(st, h.generation, damage),
	}
}

// explainAbsence says why a stream has no record: nobody wrote one for this machine, or none of them verifies.
func (r *recordReader) explainAbsence(st *stream, damage []Damage) error {
	return absence(st.name, r.books.mergeDamage(st, 0, damage))
}

func mergeAside(n name, files []aside, above uint64, damage []Damage) []Damage {
	for _, a := range files {
		known := slices.ContainsFunc(damage, func(d Damage) bool { return d.Generation == a.gen })
		if a.gen > above && !known {
			damage = append(damage, Damage{Stream: n.String(), Generation: a.gen, Reason: a.reason, Err: errAside})
		}
	}
	slices.SortFunc(damage, func(a, b Damage) int { return descending(a.Generation, b.Generation) })
	return damage
}

var errAside = errors.New("set aside earlier")

// absence makes the error for a stream of which no generation verifies. Foreign files alone are absence.
func absence(n name, damage []Damage) error {
	if len(damage) == 0 {
		return fs.ErrNotExist
	}
	if slices.ContainsFunc(damage, func(d Damage) bool { return d.Reason != reasonForeign }) {
		return &CorruptError{Stream: n.String(), Damage: damage}
	}
	return fmt.Errorf("%w: %w", fs.ErrNotExist, &damage[0])
}

// present reports whether reading the stream gives something else than fs.ErrNotExist. Called with books.mu.
func (st *stream) present() bool {
	return len(st.gens) > 0 || slices.ContainsFunc(st.aside, func(a aside) bool { return a.reason != reasonForeign })
}
