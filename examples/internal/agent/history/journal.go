// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

const (
	// Stream is the record of the Store that holds the journal.
	Stream = "history"
	// maxEntries is how many entries are kept.
	maxEntries = 256
	// maxWhy bounds the reason of an entry, in bytes.
	maxWhy = 512
	// format is that of the record. One of a later version is not touched.
	format = 1
)

// A Store keeps the journal. *checkpoint.Store satisfies it.
type Store interface {
	// Get returns the newest payload of a stream; absence is fs.ErrNotExist.
	Get(ctx context.Context, stream string) ([]byte, error)
	// Put makes payload the newest of its stream, durably.
	Put(ctx context.Context, stream string, payload []byte) error
}

// A Total says how often something has happened since the journal began.
type Total struct {
	Kind  Kind      `json:"kind"`
	Class lkg.Class `json:"class,omitempty"`
	Count uint64    `json:"count"`
}

// record is what is stored.
type record struct {
	Format  int     `json:"format"`
	Last    uint64  `json:"last"` // the N of the newest entry
	Told    uint64  `json:"told"` // the N up to which a Teller has passed entries on
	Began   bool    `json:"began"`
	Seen    Seen    `json:"seen"`
	Totals  []Total `json:"totals,omitempty"`
	Entries []Entry `json:"entries,omitempty"`
}

func (r record) clone() record {
	r.Totals, r.Entries = slices.Clone(r.Totals), slices.Clone(r.Entries)
	return r
}

// sound reports whether a Journal may have written r: it keeps to the bounds, and numbers grow and are far from their end.
func (r record) sound() bool {
	const most = math.MaxUint64 / 2
	before, kinds := uint64(0), map[Total]bool{}
	for _, e := range r.Entries {
		if e.N <= before || len(e.Why) > maxWhy || e.Times < 0 {
			return false
		}
		before = e.N
	}
	for _, t := range r.Totals {
		if kinds[Total{Kind: t.Kind, Class: t.Class}] || t.Count > most {
			return false
		}
		kinds[Total{Kind: t.Kind, Class: t.Class}] = true
	}
	return before <= r.Last && r.Told <= r.Last && r.Last <= most && len(r.Entries) <= maxEntries
}

// add appends e, or counts it with the newest entry if it tells the same.
func (r *record) add(e Entry) {
	e.Why = clip(e.Why)
	r.count(e)
	if n := len(r.Entries); n > 0 && r.Entries[n-1].same(e) {
		last := &r.Entries[n-1]
		last.Times, last.Last = max(last.Times, 1)+1, e.At
		return
	}
	r.Last++
	e.N = r.Last
	r.Entries = append(r.Entries, e)
	if over := len(r.Entries) - maxEntries; over > 0 {
		r.Entries = slices.Delete(r.Entries, 0, over)
	}
}

func (r *record) count(e Entry) {
	for i := range r.Totals {
		if t := &r.Totals[i]; t.Kind == e.Kind && t.Class == e.Class {
			t.Count++
			return
		}
	}
	r.Totals = append(r.Totals, Total{e.Kind, e.Class, 1})
}

func clip(s string) string {
	if len(s) <= maxWhy {
		return s
	}
	end := maxWhy
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// A Journal is what has happened, on record. Make it with [Open].
type Journal struct {
	store   Store
	now     func() time.Time
	turn    chan struct{} // held by who writes
	changed chan struct{} // a note that there is something new

	mu sync.Mutex // guards r; never held across I/O
	r  record
}

// Open reads the journal from store; nil keeps it in memory. now is the wall clock; nil means time.Now. The error is that of a journal of a later
// format, which is left alone. One that can't be read is begun anew, with an entry that says so.
func Open(ctx context.Context, store Store, now func() time.Time) (*Journal, error) {
	if now == nil {
		now = time.Now
	}
	j := &Journal{store: store, now: now, turn: make(chan struct{}, 1), changed: make(chan struct{}, 1), r: record{Format: format}}
	if store == nil {
		return j, nil
	}
	r, err := read(ctx, store)
	var later *laterError
	switch {
	case err == nil:
		j.r = r
	case errors.As(err, &later), ctx.Err() != nil:
		return nil, err
	case !errors.Is(err, fs.ErrNotExist):
		j.r.add(Entry{Kind: Lost, At: now().UTC(), Why: err.Error()})
	}
	return j, nil
}

// Read returns the entries on record, the oldest first, and the totals, beside a live Journal or without one. The error matches fs.ErrNotExist where there
// is no journal yet.
func Read(ctx context.Context, g lkg.Getter) ([]Entry, []Total, error) {
	r, err := read(ctx, g)
	return r.Entries, r.Totals, err
}

// laterError says that a journal is of a later format.
type laterError struct{ format int }

func (e *laterError) Error() string {
	return fmt.Sprintf("reading the journal: it has format %d, and this version knows %d", e.format, format)
}

func read(ctx context.Context, g lkg.Getter) (record, error) {
	raw, err := g.Get(ctx, Stream)
	if err != nil {
		return record{}, fmt.Errorf("reading the journal: %w", err)
	}
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return record{}, errors.New("reading the journal: it is not JSON")
	}
	if head.Format > format {
		return record{}, &laterError{head.Format}
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil || !r.sound() {
		return record{}, errors.New("reading the journal: it is malformed")
	}
	r.Format = format
	return r, nil
}

// Entries returns what is kept, the oldest first.
func (j *Journal) Entries() []Entry { return j.snapshot().Entries }

// Totals returns how often each thing has happened, in no order.
func (j *Journal) Totals() []Total { return j.snapshot().Totals }

func (j *Journal) snapshot() record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.r.clone()
}

// Report writes down what has happened since the report before, in this process or an earlier one. It implements configsync.Reporter. A report that
// failed has changed nothing, and the next one makes up for it.
func (j *Journal) Report(ctx context.Context, s configsync.Status) error {
	if s.StartedAt.IsZero() {
		return nil // nothing has started: the records are not known yet
	}
	at := j.now().UTC()
	return j.change(ctx, func(r *record) bool {
		before := r.Seen
		if !r.Began { // what was there before the journal is no news
			before, r.Began = seenIn(s, at), true
			before.StartedAt, before.Overdue = time.Time{}, false
		}
		edges := Edges(before, s, at)
		for _, e := range edges {
			e.At = at
			r.add(e)
		}
		r.Seen = seenIn(s, at)
		return len(edges) > 0
	})
}

// Add writes down one thing that no status shows. At is set where it is zero.
func (j *Journal) Add(ctx context.Context, e Entry) error {
	if e.At.IsZero() {
		e.At = j.now().UTC()
	}
	return j.change(ctx, func(r *record) bool { r.add(e); return true })
}

// told notes that entries up to n were passed on.
func (j *Journal) told(ctx context.Context, n uint64) error {
	return j.change(ctx, func(r *record) bool {
		news := n > r.Told
		r.Told = max(r.Told, n)
		return news
	})
}

// change has f work on a copy, which becomes the journal once it is stored. f says whether there is anything to store.
func (j *Journal) change(ctx context.Context, f func(*record) bool) error {
	select {
	case j.turn <- struct{}{}:
		defer func() { <-j.turn }()
	case <-ctx.Done():
		return fmt.Errorf("writing the journal: %w", context.Cause(ctx))
	}
	next := j.snapshot()
	if !f(&next) {
		return nil
	}
	if j.store != nil {
		raw, err := json.Marshal(next)
		if err == nil {
			err = j.store.Put(ctx, Stream, raw)
		}
		if err != nil {
			return fmt.Errorf("writing the journal: %w", err)
		}
	}
	j.mu.Lock()
	j.r = next
	j.mu.Unlock()
	select {
	case j.changed <- struct{}{}:
	default:
	}
	return nil
}
