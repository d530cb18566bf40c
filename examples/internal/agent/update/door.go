// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"context"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/belayproject/belay/rollout/nodeagent"
)

// A door stands between the agent and the shadow of its node. While it is shut there is no shadow: no order is seen, and nothing is written.
type door struct {
	shadow  nodeagent.Shadows // set before the agent runs
	changed chan struct{}     // wakes the agent
	open    atomic.Bool
}

// newDoor is shut.
func newDoor() *door { return &door{changed: make(chan struct{}, 1)} }

// before is the door in front of a shadow.
func (d *door) before(shadow nodeagent.Shadows) nodeagent.Shadows {
	d.shadow = shadow
	return d
}

// set opens the door, or shuts it.
func (d *door) set(open bool) {
	if d.open.Swap(open) != open {
		d.knock()
	}
}

// knock has the agent look, and does not wait for it.
func (d *door) knock() {
	select {
	case d.changed <- struct{}{}:
	default: // it is about to look anyway
	}
}

// Read implements nodeagent.Shadows.
func (d *door) Read(ctx context.Context) (nodeagent.Shadow, string, error) {
	if !d.open.Load() {
		return nodeagent.Shadow{}, "", fmt.Errorf("this process is not the agent of its node: %w", fs.ErrNotExist)
	}
	return d.shadow.Read(ctx)
}

// Store implements nodeagent.Shadows. Nothing is written through a door that was shut after the shadow was read.
func (d *door) Store(ctx context.Context, s nodeagent.Status, version string) error {
	if !d.open.Load() {
		return fmt.Errorf("this process is not the agent of its node any more: %w", nodeagent.ErrConflict)
	}
	return d.shadow.Store(ctx, s, version)
}
