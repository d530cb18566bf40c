// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"
)

// Stream is the record of the Store that holds what was rendered and told.
const Stream = "drift"

// A Policy says what is done about a drift.
type Policy int

// The policies. The zero value changes nothing on the node.
const (
	Report Policy = iota // tell
	Repair               // tell, and write the file again
)

// What is found where there is no content to have a digest.
const (
	Absent     = "absent"
	notRegular = "not a regular file"
	unreadable = "unreadable"
)

// A Store keeps the record. *checkpoint.Store satisfies it.
type Store interface {
	// Get returns the newest payload of a stream; absence is fs.ErrNotExist.
	Get(ctx context.Context, stream string) ([]byte, error)
	// Put makes payload the newest of its stream, durably.
	Put(ctx context.Context, stream string, payload []byte) error
}

// A Finding is one drift. The zero Finding is none.
type Finding struct {
	// Want is the digest of what was rendered, Found that of what is there, or one of the words above.
	Want, Found string
	// At is when it was first seen, by the wall clock, for people.
	At time.Time
}

// String is for people.
func (f Finding) String() string {
	if f == (Finding{}) {
		return "the file is what was rendered"
	}
	return fmt.Sprintf("the file is %s, and %s was rendered", f.Found, f.Want)
}

// Options are the parts of a [Watch].
type Options struct {
	// Path is that of the file, absolute. Required.
	Path string
	// Policy says what is done.
	Policy Policy
	// Store keeps what was rendered over restarts. Nil keeps it in memory.
	Store Store
	// Write makes payload the content of the file, as a whole. It is called one at a time. Required.
	Write func(payload []byte) error
	// Remove takes the file away, and takes one that isn't there for done. Required by who calls [Watch.Remove].
	Remove func() error
	// Tell is told each drift until it returns nil, and must take the same one twice. Required.
	Tell func(ctx context.Context, f Finding) error
	// Now is the wall clock. Nil means time.Now. Nothing is decided by it.
	Now func() time.Time
}

// record is what is stored. Next is set while the file is written. Absent stands for a file that was taken away.
type record struct {
	Path     string    `json:"path"`
	Rendered string    `json:"rendered,omitempty"`
	Next     string    `json:"next,omitempty"`
	Told     string    `json:"told,omitempty"` // what was found and told last
	Since    time.Time `json:"since,omitzero"`
}

// A Watch writes one file and looks at it. Make it with [Open].
type Watch struct {
	o     Options
	turn  chan struct{} // held by who reads or writes the file and the record; guards what follows
	r     record
	kept  record       // what the Store holds
	again func() error // does once more what this process has done to the file last; nil: nothing yet

	mu  sync.Mutex // guards now; never held across I/O
	now Finding
}

// Open reads what an earlier process has rendered. A record that can't be read, or is of another path, is begun anew. The error is a mistake of the
// caller, or that of ctx.
func Open(ctx context.Context, o Options) (*Watch, error) {
	if !filepath.IsAbs(o.Path) || o.Write == nil || o.Tell == nil || o.Policy != Report && o.Policy != Repair {
		return nil, fmt.Errorf("drift: Options must have an absolute Path, Write, Tell and a Policy, got path %q and policy %d", o.Path, o.Policy)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Watch{o: o, turn: make(chan struct{}, 1), r: record{Path: o.Path}}
	if o.Store == nil {
		return w, nil
	}
	raw, err := o.Store.Get(ctx, Stream)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("reading what was rendered: %w", context.Cause(ctx))
	}
	var r record
	if err == nil && json.Unmarshal(raw, &r) == nil && r.Path == o.Path {
		w.r, w.kept = r, r
	}
	return w, nil
}

// Render looks at the file, tells what it finds, and then makes payload its content. Its error is that of Write, or of ctx: nothing else keeps a
// config from being rendered, and what could not be told or stored is tried again by the next look.
func (w *Watch) Render(ctx context.Context, payload []byte) error {
	payload = append(payload[:0:0], payload...) // kept for a repair
	return w.make(ctx, digestOf(payload), func() error { return w.o.Write(payload) })
}

// Remove is Render for a config that needs no file: from then on one that is there is a drift. Its error is that of Options.Remove, or of ctx.
func (w *Watch) Remove(ctx context.Context) error {
	if w.o.Remove == nil {
		return fmt.Errorf("drift: removing %q takes an Options.Remove, which is nil", w.o.Path)
	}
	return w.make(ctx, Absent, w.o.Remove)
}

// make has the file be what next says, by do.
func (w *Watch) make(ctx context.Context, next string, do func() error) error {
	if err := w.acquire(ctx); err != nil {
		return err
	}
	defer w.release()
	_ = w.look(ctx) // told again by the next look, unless this is the last word about the file
	if w.r.Rendered != next {
		w.r.Next = next
		_ = w.save(ctx)
	}
	if err := do(); err != nil {
		return err
	}
	w.again = do
	w.r.Rendered, w.r.Next = next, ""
	w.settle()
	_ = w.save(ctx)
	return nil
}

// Look compares the file with what was rendered, tells a drift that is new, and repairs it if that is the policy. Before anything was rendered
// there is nothing to compare. The error is what was in the way; the next look makes up for it.
func (w *Watch) Look(ctx context.Context) error {
	if err := w.acquire(ctx); err != nil {
		return err
	}
	defer w.release()
	err := w.look(ctx)
	if w.now == (Finding{}) || w.o.Policy != Repair || w.again == nil || err != nil {
		return errors.Join(err, w.save(ctx))
	}
	if err := w.again(); err != nil {
		return fmt.Errorf("repairing %q: %w", w.o.Path, err)
	}
	w.settle()
	return w.save(ctx)
}

// Run looks each interval until ctx ends. failed may be nil; it is given what is in the way.
func (w *Watch) Run(ctx context.Context, interval time.Duration, failed func(error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := w.Look(ctx); err != nil && ctx.Err() == nil && failed != nil {
			failed(err)
		}
	}
}

// Now is what the last look or write has left: the zero Finding where all is well.
func (w *Watch) Now() Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// look finds out how the file is, and tells what is new. The caller has the turn.
func (w *Watch) look(ctx context.Context) error {
	found := inspect(w.o.Path)
	if !drifted(w.r, found, w.again != nil) {
		w.settle()
		return nil
	}
	if w.r.Since.IsZero() || w.r.Told != found && w.now.Found != found {
		w.r.Since = w.o.Now().UTC()
	}
	f := Finding{Want: w.r.Rendered, Found: found, At: w.r.Since}
	w.show(f)
	if w.r.Told == found {
		return nil
	}
	if err := w.o.Tell(ctx, f); err != nil {
		return fmt.Errorf("telling of a drift of %q: %w", w.o.Path, err)
	}
	w.r.Told = found
	return nil
}

// drifted is pure. has says that this process has rendered: before, a file that is absent may have lain on a disk that is gone with a boot.
func drifted(r record, found string, has bool) bool {
	switch {
	case r.Rendered == "", found == r.Rendered, r.Next != "" && found == r.Next:
		return false
	default:
		return has || found != Absent
	}
}

// settle notes that the file is as it should be.
func (w *Watch) settle() {
	w.r.Told, w.r.Since = "", time.Time{}
	w.show(Finding{})
}

func (w *Watch) show(f Finding) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = f
}

// save stores the record if it is another one than is stored.
func (w *Watch) save(ctx context.Context) error {
	if w.o.Store == nil || w.r == w.kept {
		return nil
	}
	raw, err := json.Marshal(w.r)
	if err == nil {
		err = w.o.Store.Put(ctx, Stream, raw)
	}
	if err != nil {
		return fmt.Errorf("keeping what was rendered to %q: %w", w.o.Path, err)
	}
	w.kept = w.r
	return nil
}

func (w *Watch) acquire(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for a look at %q: %w", w.o.Path, context.Cause(ctx))
	}
}

func (w *Watch) release() { <-w.turn }

func digestOf(payload []byte) string {
	sum := sha256.Sum256(payload)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// wordFor says what is there instead of a file with content.
func wordFor(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return Absent
	}
	return unreadable
}
