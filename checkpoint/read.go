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

// Get returns the payload of the newest generation of a stream that verifies, read from the disk. It changes nothing but the
// names of damaged files.
//
// Errors match [fs.ErrNotExist] where the stream has no record (and [ErrForeign], too, where that is so because what is there
// belongs to another machine), [ErrCorrupt] where it has some and none verifies (the error is a [CorruptError]), [ErrTooNew]
// where the newest is of a format that this version does not know, [ErrName], [fs.ErrClosed], or the context's.
func (s *Store) Get(ctx context.Context, stream string) ([]byte, error) {
	rec, err := s.Read(ctx, stream)
	return rec.Payload, err
}

// Read is Get with all that is known about the record.
func (s *Store) Read(ctx context.Context, stream string) (Record, error) {
	rec, err := s.readName(ctx, stream)
	if err != nil {
		return Record{}, fmt.Errorf("reading %s: %w", quoted(stream), err)
	}
	return rec, nil
}

func (s *Store) readName(ctx context.Context, stream string) (Record, error) {
	n, err := parseName(stream)
	if err != nil {
		return Record{}, err
	}
	if err := s.begin(ctx); err != nil {
		return Record{}, err
	}
	defer s.calls.endCall()
	st, err := s.lookup(ctx, n)
	if err != nil {
		return Record{}, err
	}
	if st == nil {
		return Record{}, fs.ErrNotExist
	}
	return s.read(ctx, st)
}

// read tries the generations from the newest down.
func (s *Store) read(ctx context.Context, st *stream) (Record, error) {
	var damage []Damage
	for below := uint64(maxGeneration + 1); ; {
		if err := ctx.Err(); err != nil {
			return Record{}, err
		}
		gen, found := s.books.findNewest(st, below)
		if !found {
			return Record{}, s.nothing(st, damage)
		}
		h, payload, _, f := s.load.load(st.in.fd, st.name, gen, nil)
		if f == nil {
			return s.found(st, &h, payload, damage), nil
		}
		if f.reason == reasonTooNew {
			return Record{}, &Damage{Stream: st.name.String(), Generation: gen, Reason: f.reason, Err: f.err}
		}
		if f.reason == reasonMissing && s.superseded(ctx, st, gen) {
			below, damage = maxGeneration+1, nil
			continue
		}
		damage = append(damage, s.evidence.reportDamage(st, gen, f))
		s.evidence.setAside(st, gen, f)
		below = gen
	}
}

// superseded reports whether a generation went away because a Put or a Delete dropped it. Where it still is in the books, a
// Delete may be in the middle: this waits for its end.
func (s *Store) superseded(ctx context.Context, st *stream, gen uint64) bool {
	if !s.books.holdsGeneration(st, gen) {
		return true
	}
	if st.take(ctx) != nil {
		return true // reading ends with the context
	}
	defer st.release()
	s.books.mu.Lock()
	g := st.find(gen)
	never := g != nil && g.doubtful
	s.books.mu.Unlock()
	if never {
		s.books.forgetGeneration(st, gen) // the Put of it said that it may not be there
	}
	return g == nil || never
}

func (s *Store) found(st *stream, h *header, payload []byte, damage []Damage) Record {
	return Record{
		Stream: h.stream, Generation: h.generation, Digest: h.payload.String(), Writer: h.writer, Payload: payload,
		Damage: s.books.mergeDamage(st, h.generation, damage),
	}
}

// nothing says why a stream has no record: nobody wrote one for this machine, or none of them verifies.
func (s *Store) nothing(st *stream, damage []Damage) error {
	return absence(st.name, s.books.mergeDamage(st, 0, damage))
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

// List returns the names of the streams in a directory, sorted and in full ("checkpoints/a"); "" is the store's own
// directory. Streams whose records are all damaged, or of a newer format, are in the list. A directory that is not there
// has none. Errors match [ErrName], [fs.ErrClosed], or the context's.
func (s *Store) List(ctx context.Context, dir string) ([]string, error) {
	names, err := s.list(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", quoted(dir), err)
	}
	return names, nil
}

func (s *Store) list(ctx context.Context, dir string) ([]string, error) {
	if dir != "" {
		if err := checkDir(dir); err != nil {
			return nil, err
		}
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.calls.endCall()
	f, err := s.known(ctx, dir)
	if f == nil || err != nil {
		return nil, err
	}
	return s.books.listPresent(f), nil
}

// present reports whether reading the stream gives something else than fs.ErrNotExist. Called with books.mu.
func (st *stream) present() bool {
	return len(st.gens) > 0 || slices.ContainsFunc(st.aside, func(a aside) bool { return a.reason != reasonForeign })
}
