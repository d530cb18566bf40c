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

// explainAbsence says why a stream has no record: none was written for this machine, or none of them verifies.
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

// Reader reads the records of a directory without its lock, also while a Store has it open. It changes nothing on the disk:
// what is damaged stays where it is and is in [Record.Damage]. It holds nothing open and needs no Close. It may be used by
// several goroutines.
//
// It may see a record an instant before the Put of it is acknowledged.
type Reader struct {
	sys  fsys
	load loader
	path string
}

// readerTries bounds how often a directory may change under one call.
const readerTries = 100

// OpenReader returns a Reader for the store in a directory. An absent directory matches [fs.ErrNotExist]. Of the options,
// MachineID and MaxStore count.
func OpenReader(dir string, o Options) (*Reader, error) {
	return openReaderOn(hostFS(), dir, o)
}

func openReaderOn(sys fsys, dir string, o Options) (*Reader, error) {
	o, err := o.complete()
	if sys == nil {
		err = errNoHost()
	}
	if err != nil {
		return nil, fmt.Errorf("opening the store in %q for reading: %w", dir, err)
	}
	path, err := absolutePath("checkpoint.OpenReader", dir)
	r := &Reader{sys: sys, load: newLoader(sys, o), path: path}
	if err == nil {
		var fd int
		if fd, err = r.enter(""); err == nil {
			err = sys.close(fd)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the store in %q for reading: %w", dir, err)
	}
	return r, nil
}

// Get is [Store.Get] without the lock.
func (r *Reader) Get(ctx context.Context, stream string) ([]byte, error) {
	rec, err := r.Read(ctx, stream)
	return rec.Payload, err
}

// Read is [Store.Read] without the lock.
func (r *Reader) Read(ctx context.Context, stream string) (Record, error) {
	rec, err := r.read(ctx, stream)
	if err != nil {
		return Record{}, fmt.Errorf("reading %s: %w", quoted(stream), err)
	}
	return rec, nil
}

// List is [Store.List] without the lock. It reads the records, to leave out those of another machine.
func (r *Reader) List(ctx context.Context, dir string) ([]string, error) {
	names, err := r.list(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", quoted(dir), err)
	}
	return names, nil
}

// enter opens the store's directory, or one in it.
func (r *Reader) enter(dir string) (int, error) {
	if r.sys == nil {
		return -1, ErrNotOpen
	}
	root, err := r.sys.openPath(r.path)
	if err != nil || dir == "" {
		return root, err
	}
	defer r.sys.close(root)
	fd, _, err := openFolder(r.sys, root, dir, r.load.uid)
	return fd, err
}

func (r *Reader) read(ctx context.Context, stream string) (Record, error) {
	n, err := parseName(stream)
	if err != nil {
		return Record{}, err
	}
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	fd, err := r.enter(n.dir)
	if err != nil {
		return Record{}, err
	}
	defer r.sys.close(fd)
	return r.settle(ctx, fd, n)
}

// settle reads until the directory held still for as long as the answer took.
func (r *Reader) settle(ctx context.Context, fd int, n name) (Record, error) {
	seen, err := r.look(fd, n.base)
	for range readerTries {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return Record{}, err
		}
		rec, gone, problem := r.pick(fd, n, seen)
		if problem == nil && !gone {
			return rec, nil
		}
		var again sight
		again, err = r.look(fd, n.base)
		if err == nil && !gone && again.equal(seen) {
			return Record{}, problem
		}
		seen = again
	}
	return Record{}, fmt.Errorf("the directory changed %d times while it was read", readerTries)
}

// sight is what a directory listing says about one stream.
type sight struct {
	gens  []uint64 // newest first
	aside []aside
}

func (s sight) equal(o sight) bool {
	return slices.Equal(s.gens, o.gens) && slices.Equal(s.aside, o.aside)
}

func (r *Reader) look(fd int, base string) (sight, error) {
	names, err := r.sys.list(fd)
	var s sight
	for _, file := range names {
		p, ok := parseFile(file)
		switch {
		case !ok || p.base != base || p.kind == kindUnsure:
		case p.kind == kindRecord:
			s.gens = append(s.gens, p.gen)
		default:
			s.aside = append(s.aside, aside{gen: p.gen, reason: p.reason})
		}
	}
	slices.SortFunc(s.gens, descending)
	slices.SortFunc(s.aside, func(a, b aside) int { return descending(a.gen, b.gen) })
	return s, err
}

// pick tries the generations from the newest down; gone says that one went away since the directory was listed.
func (r *Reader) pick(fd int, n name, s sight) (rec Record, gone bool, err error) {
	var damage []Damage
	for _, gen := range s.gens {
		h, payload, _, f := r.load.load(fd, n, gen, nil)
		if f == nil {
			rec := Record{Stream: h.stream, Generation: gen, Digest: h.payload.String(), Writer: h.writer, Payload: payload}
			rec.Damage = mergeAside(n, s.aside, gen, damage)
			return rec, false, nil
		}
		if f.reason == reasonMissing {
			return Record{}, true, nil
		}
		d := Damage{Stream: n.String(), Generation: gen, Reason: f.reason, Err: f.err}
		if f.reason == reasonTooNew {
			return Record{}, false, &d
		}
		damage = append(damage, d)
	}
	return Record{}, false, absence(n, mergeAside(n, s.aside, 0, damage))
}

func (r *Reader) list(ctx context.Context, dir string) ([]string, error) {
	if dir != "" {
		if err := checkDir(dir); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	fd, err := r.enter(dir)
	if dir != "" && isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.sys.close(fd)
	files, err := r.sys.list(fd)
	if err != nil {
		return nil, err
	}
	return r.present(ctx, fd, dir, files)
}

// present keeps the streams that reading finds, whole or not.
func (r *Reader) present(ctx context.Context, fd int, dir string, files []string) ([]string, error) {
	var bases []string
	for _, file := range files {
		if p, ok := parseFile(file); ok && p.kind != kindUnsure {
			bases = append(bases, p.base)
		}
	}
	slices.Sort(bases)
	var found []string
	for _, base := range slices.Compact(bases) {
		n := nameIn(dir, base)
		_, err := r.settle(ctx, fd, n)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			found = append(found, n.full)
		}
	}
	return found, nil
}
