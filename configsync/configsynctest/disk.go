// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsynctest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
)

// A Disk is a configsync.Store over memory. The zero value is empty and works. It may be used by several goroutines.
type Disk struct {
	mu      sync.Mutex
	streams map[string][]byte
	err     error
	left    int // writes until the cut; counted only while cut is set
	cut     bool
	onCut   func()
	log     []string
}

// Fail makes every write fail with err and change nothing, as a full or read-only disk does. Nil heals it.
func (d *Disk) Fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// CutAfter lets n more writes land. Those after them fail and change nothing, as if the process had been killed before the
// first of them; kill, if not nil, is called at that moment, once, and should end the process. A negative n removes the cut.
func (d *Disk) CutAfter(n int, kill func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut, d.left, d.onCut = n >= 0, n, kill
}

// ErrCut is the error of writes after the cut.
var ErrCut = fmt.Errorf("configsynctest: the process was killed before this write")

// Writes returns how many writes have landed.
func (d *Disk) Writes() int { return len(d.Log()) }

// Log returns the streams of all writes that have landed, in order.
func (d *Disk) Log() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.log)
}

// Clone returns a copy of what is on the disk, without its faults.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Disk{streams: maps.Clone(d.streams)}
}

// Corrupt makes reads of a stream fail until it is written again, as when every generation of a record is damaged.
func (d *Disk) Corrupt(stream string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set(stream, nil)
}

// Get implements configsync.Store.
func (d *Disk) Get(_ context.Context, stream string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, ok := d.streams[stream]
	switch {
	case !ok:
		return nil, fmt.Errorf("reading %q: %w", stream, fs.ErrNotExist)
	case b == nil:
		return nil, fmt.Errorf("reading %q: every generation is damaged", stream)
	}
	return bytes.Clone(b), nil
}

// Put implements configsync.Store.
func (d *Disk) Put(_ context.Context, stream string, payload []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.streams[stream]; ok && old != nil && bytes.Equal(old, payload) {
		return nil
	}
	if err := d.admit(stream); err != nil {
		return err
	}
	d.set(stream, append([]byte{}, payload...))
	return nil
}

// Delete implements configsync.Store.
func (d *Disk) Delete(_ context.Context, stream string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.streams[stream]; !ok {
		return nil
	}
	if err := d.admit(stream); err != nil {
		return err
	}
	delete(d.streams, stream)
	return nil
}

// List implements configsync.Store.
func (d *Disk) List(_ context.Context, dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dir == "" {
		dir = "."
	}
	var out []string
	for s := range d.streams {
		if path.Dir(s) == dir {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out, nil
}

func (d *Disk) set(stream string, b []byte) {
	if d.streams == nil {
		d.streams = map[string][]byte{}
	}
	d.streams[stream] = b
}

// admit counts a write or says why it doesn't land.
func (d *Disk) admit(stream string) error {
	switch {
	case d.err != nil:
		return fmt.Errorf("writing %q: %w", stream, d.err)
	case d.cut && d.left == 0:
		if d.onCut != nil {
			d.onCut()
			d.onCut = nil
		}
		return fmt.Errorf("writing %q: %w", stream, ErrCut)
	case d.cut:
		d.left--
	}
	d.log = append(d.log, stream)
	return nil
}
