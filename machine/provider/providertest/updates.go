// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

// plan says what an update would do.
func (s *Server) plan(ctx context.Context, q updateCall) (provider.Plan, error) {
	r, unlock, err := s.holdUpdate(ctx, &q)
	if err != nil {
		return provider.Plan{}, err
	}
	defer unlock()
	return r.plan(q), nil
}

// update begins or continues an update in place.
func (s *Server) update(ctx context.Context, q updateCall) (provider.Progress, error) {
	r, unlock, err := s.holdUpdate(ctx, &q)
	if err != nil {
		return provider.Progress{}, err
	}
	defer unlock()
	p := r.plan(q)
	switch {
	case p.Method == provider.Nothing:
		return provider.Progress{Done: true}, nil
	case p.Method != provider.InPlace:
		return provider.Progress{}, provider.Errorf(provider.NotSupported, "instance %q can't be updated in place: %s", r.Token, p.Reason)
	case r.Coming == nil || r.Coming.Digest != q.Request.Digest:
		now := s.now()
		r.Coming, r.Changed = q.wanted(), now.Add(milliseconds(q.Config.UpdateMilliseconds))
		r.say(now, "update in place: %s", p.Reason)
		r.settle(now)
		if err := s.store.put(r); err != nil {
			return provider.Progress{}, err
		}
	}
	if r.Coming == nil {
		return provider.Progress{Done: true}, nil
	}
	return provider.Progress{Message: "it is being updated in place", AfterSeconds: seconds(r.Changed.Sub(s.now()))}, nil
}

// holdUpdate finds the instance of a request whose config it checks, and takes the lock of its token.
func (s *Server) holdUpdate(ctx context.Context, q *updateCall) (record, func(), error) {
	if err := q.Config.complete(); err != nil {
		return record{}, nil, err
	}
	r, unlock, err := s.hold(ctx, q.Request.Ref)
	switch {
	case err != nil:
		return record{}, nil, err
	case r.Owner.Cluster != q.Request.Cluster:
		err = foreign(r.Token, q.Request.Cluster)
	case r.Phase == leaving || r.Phase == retained:
		err = provider.Errorf(provider.Conflict, "instance %q is %s: want one that was not deleted", r.Token, r.Phase)
	}
	if err != nil {
		unlock()
	}
	return r, unlock, err
}

func (q updateCall) wanted() *wanted {
	desired := q.Request.Desired
	desired.Config = nil
	return &wanted{Digest: q.Request.Digest, Desired: desired, Config: q.Config}
}

// plan compares what an instance is with what it should be. What was begun and is not done counts as what it is not yet.
func (r *record) plan(q updateCall) provider.Plan {
	if r.Digest == q.Request.Digest && r.Coming == nil {
		return provider.Plan{Method: provider.Nothing, Reason: "it is what is desired"}
	}
	p := provider.Plan{Method: provider.InPlace, Reason: "nothing of it that runs changes"}
	changed := r.wanted.changes(q.wanted())
	if len(changed) == 0 {
		return p
	}
	reasons := make([]string, len(changed))
	for i, what := range changed {
		how := q.Config.method(what)
		reasons[i] = fmt.Sprintf("%s changes: %s", what, how)
		if how == provider.Unsupported || how == provider.Replace && p.Method == provider.InPlace {
			p.Method = how
		}
		p.Disrupts = p.Disrupts || what != "node" && what != "roles"
	}
	p.Reason = strings.Join(reasons, ", ")
	switch p.Method {
	case provider.Replace:
		p.Lost = r.disks()
	case provider.Unsupported:
		p.Disrupts = false
	}
	return p
}

// changes names what differs.
func (w *wanted) changes(to *wanted) []string {
	a, b := w.Desired, to.Desired
	of := map[string]bool{
		"size":    w.Config.Size != to.Config.Size,
		"zone":    w.Config.Zone != to.Config.Zone,
		"image":   w.Config.Image != to.Config.Image,
		"group":   w.Config.Group != to.Config.Group,
		"disks":   !slices.Equal(w.Config.Disks, to.Config.Disks),
		"kubelet": a.Versions.Kubelet != b.Versions.Kubelet,
		"runtime": a.Versions.Runtime != b.Versions.Runtime,
		"other":   !maps.Equal(a.Versions.Other, b.Versions.Other),
		"roles":   !slices.Equal(a.Roles, b.Roles),
		"node": !maps.Equal(a.Node.Labels, b.Node.Labels) || !maps.Equal(a.Node.Annotations, b.Node.Annotations) ||
			!slices.Equal(a.Node.Taints, b.Node.Taints),
	}
	maps.DeleteFunc(of, func(_ string, changed bool) bool { return !changed })
	return slices.Sorted(maps.Keys(of))
}

// validate checks a config.
func (s *Server) validate(_ context.Context, q configCall) (nothing, error) {
	return nothing{}, q.Config.complete()
}

// capacity says what a Node of a config would have.
func (s *Server) capacity(_ context.Context, q configCall) (map[string]string, error) {
	if err := q.Config.complete(); err != nil {
		return nil, err
	}
	return sizes[q.Config.Size], nil
}

// resize gives a group its size.
func (s *Server) resize(ctx context.Context, q resizeCall) (nothing, error) {
	if err := q.Config.complete(); err != nil {
		return nothing{}, err
	}
	if !isName(q.Name) {
		return nothing{}, invalid("group %.80q: want up to 200 lower case letters, digits, dashes and dots", q.Name)
	}
	if q.Size < 0 || q.Size > maxCount {
		return nothing{}, invalid("the size %d of group %q: want 0 to %d", q.Size, q.Name, maxCount)
	}
	unlock, err := s.store.locks.lock(ctx, "group/"+q.Name)
	if err != nil {
		return nothing{}, err
	}
	defer unlock()
	if _, out := s.faults.take(s.now(), "Resize", q.Config.Zone, Stockout); out {
		return nothing{}, provider.Errorf(provider.Stockout, "zone %q has no capacity for size %d of group %q", q.Config.Zone, q.Size, q.Name)
	}
	return nothing{}, s.store.resize(q.Name, q.Size)
}
