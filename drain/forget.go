// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"fmt"

	"github.com/belayproject/belay/internal/option"
)

// Forget lets go of all that this process remembers of a holder's drains, as if it had been started anew, and tells [Metrics] that it knows of these nodes
// no more. It is for a process that does the holder's work no longer, since another one leads: what was remembered grows old, and how the drains stand is for
// that one to tell. The nodes stay as they are, and a pass that comes later begins with what is on them. It waits for the holder's passes that
// are under way; if ctx ends before, its error is returned, and some of the drains may still be remembered.
func (d *Drainer) Forget(ctx context.Context, holder string) error {
	if d == nil || d.registry == nil {
		return option.NotMade("drain.Drainer.Forget", "drain.New")
	}
	for _, k := range d.registry.of(holder) {
		unlock, err := d.registry.lock(ctx, k)
		if err != nil {
			return fmt.Errorf("forgetting the drains of holder %q: %w", holder, err)
		}
		if f, counted := d.o.Metrics.Phase, d.registry.forget(k); f != nil && counted != "" {
			f(counted, "")
		}
		unlock()
	}
	return nil
}

// of are the keys of a holder that there is a memory of.
func (g *registry) of(holder string) (keys []key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for k := range g.memories {
		if k.holder == holder {
			keys = append(keys, k)
		}
	}
	return keys
}

// forget drops what is remembered, under the lock of its passes, and returns the phase that metrics were told.
func (g *registry) forget(k key) (counted Phase) {
	g.mu.Lock()
	m := g.memories[k]
	g.mu.Unlock()
	g.drop(k)
	if m == nil {
		return ""
	}
	return m.counted
}
