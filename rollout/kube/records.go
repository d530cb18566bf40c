// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

var _ controller.Shadows = (*records)(nil)

// records are the NodeShadows of a disruption domain as its controller uses them: [controller.Shadows].
type records struct {
	shadows *Shadows
	list    func() []*v1alpha1.NodeShadow
	own     written[*v1alpha1.NodeShadow]
}

// NewRecords returns the shadows of a domain: see [Shadows.In]. list returns those of all domains from a cache, and nil means that each List asks the
// API server. They are not changed.
// Shadows that these records have written are seen as they were written, until the cache has come so far.
func NewRecords(shadows *Shadows, list func() []*v1alpha1.NodeShadow) (controller.Shadows, error) {
	check := checkerFor("NewRecords")
	check.Require("shadows", shadows, "see NewShadows")
	if err := check.Err(); err != nil {
		return nil, err
	}
	return &records{shadows: shadows, list: list}, nil
}

// List implements [controller.Shadows].
func (r *records) List(ctx context.Context) ([]controller.Shadow, error) {
	if r.list == nil {
		return r.Live(ctx)
	}
	seen := r.own.over(r.list())
	all := make([]controller.Shadow, 0, len(seen))
	for _, sh := range seen {
		if r.shadows.has(sh) {
			all = append(all, recordOf(sh))
		}
	}
	return all, ctx.Err()
}

// Ended implements [controller.Shadows], by the cache.
func (r *records) Ended(slots []protocol.Slot) bool {
	if r.list == nil {
		return false
	}
	open := make(map[string]int64, len(slots))
	for i := range slots {
		open[slots[i].UID] = int64(slots[i].Attempt)
	}
	for _, sh := range r.list() {
		if k, ok := open[sh.Spec.NodeUID]; ok && sh.Status.Attempt >= k && r.shadows.has(sh) && controller.Ended(v1alpha1.ShadowOf(sh), protocol.Attempt(k)) {
			return true
		}
	}
	return false
}

// Live implements [controller.Shadows].
func (r *records) Live(ctx context.Context) ([]controller.Shadow, error) {
	live, err := r.shadows.List(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]controller.Shadow, len(live))
	for i := range live {
		all[i] = recordOf(&live[i])
	}
	return all, nil
}

func recordOf(sh *v1alpha1.NodeShadow) controller.Shadow {
	return controller.Shadow{
		Shadow: v1alpha1.ShadowOf(sh), Runs: protocol.ParseRevision(sh.Status.Current.String()), Irreversible: sh.Status.Known && !sh.Status.Revertible,
		Deleting: sh.DeletionTimestamp != nil, Version: sh,
	}
}

// Get implements [controller.Shadows].
func (r *records) Get(ctx context.Context, node string) (controller.Shadow, error) {
	sh, err := r.shadows.read(ctx, node)
	if err != nil {
		return controller.Shadow{}, err
	}
	return recordOf(sh), nil
}

// Create implements [controller.Shadows]. That the node is in another domain is no conflict: it may be so for long.
func (r *records) Create(ctx context.Context, sh protocol.Shadow) (controller.Shadow, error) {
	made, err := r.shadows.Create(ctx, sh)
	if errors.Is(err, rollout.ErrConflict) {
		if other, readErr := r.shadows.read(ctx, sh.Node); readErr == nil && !r.shadows.has(other) {
			return controller.Shadow{}, fmt.Errorf("node %q is in domain %q, want %q: a rollout there selects it, or its %s is left over: %w",
				sh.Node, other.Spec.Domain, r.shadows.domain, v1alpha1.NodeShadowKind, controller.ErrOtherDomain)
		}
	}
	if err != nil {
		return controller.Shadow{}, err
	}
	return recordOf(made), nil
}

// Order implements [controller.Shadows].
func (r *records) Order(ctx context.Context, read controller.Shadow, o protocol.Orders) (controller.Shadow, error) {
	sh, err := versionOf(read)
	if err != nil {
		return read, err
	}
	next, err := r.shadows.order(ctx, sh, o)
	if errors.Is(err, errDeleting) {
		err = fmt.Errorf("%w: %w", rollout.ErrConflict, err)
	}
	if err != nil {
		return read, err
	}
	r.own.wrote(next)
	return recordOf(next), nil
}

// Delete implements [controller.Shadows].
func (r *records) Delete(ctx context.Context, read controller.Shadow) error {
	sh, err := versionOf(read)
	if err != nil {
		return err
	}
	return asConflict(r.shadows.deleteRemovable(ctx, sh), errNotRemovable)
}

// Bury implements [controller.Shadows].
func (r *records) Bury(ctx context.Context, read controller.Shadow) error {
	sh, err := versionOf(read)
	if err != nil {
		return err
	}
	return asConflict(r.shadows.bury(ctx, sh), errNodeExists)
}

// asConflict makes what somebody else has done meanwhile a conflict.
func asConflict(err, what error) error {
	if errors.Is(err, what) {
		return fmt.Errorf("%w: %w", rollout.ErrConflict, err)
	}
	return err
}

func versionOf(read controller.Shadow) (*v1alpha1.NodeShadow, error) {
	sh, ok := read.Version.(*v1alpha1.NodeShadow)
	if !ok {
		return nil, fmt.Errorf("writing %s %q: its version is not of these records", v1alpha1.NodeShadowKind, read.Node)
	}
	return sh, nil
}
