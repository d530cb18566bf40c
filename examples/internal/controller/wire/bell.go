// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import "sync"

// A bell wakes everybody who hears it. The zero value is one.
type bell struct {
	mu    sync.Mutex
	heard map[chan struct{}]bool
}

// ring wakes all, and does not wait for anybody.
func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.heard {
		select {
		case c <- struct{}{}:
		default: // it is about to look anyway
		}
	}
}

// hear returns a channel that has a value after each ring, one for those that came together, until stop is called.
func (b *bell) hear() (wake <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heard == nil {
		b.heard = map[chan struct{}]bool{}
	}
	b.heard[c] = true
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.heard, c)
	}
}
