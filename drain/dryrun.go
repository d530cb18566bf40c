// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/option"
)

const (
	// catchUpTime is how long a dry run waits for the cache to show a pod that the server has.
	catchUpTime = 500 * time.Millisecond
	// catchUpInterval is the time between two looks at the cache meanwhile.
	catchUpInterval = 20 * time.Millisecond
)

// Plan is the dry run: what a drain of these nodes under the policy would decide if it began now. It decides on the
// cache, as the drain does, and lists the pods of each node from the server beside it: a [CacheError] says that the
// cache does not show them all. It writes nothing. Of a drain under way it knows nothing: for that, look at its
// [Status].
func (d *Drainer) Plan(ctx context.Context, policy Policy, nodes ...string) (Result, error) {
	if d == nil || d.registry == nil {
		return Result{}, option.NotMade("drain.Drainer.Plan", "drain.New")
	}
	s, err := d.dryRun(ctx, policy, nodes)
	if err != nil {
		return Result{}, fmt.Errorf("planning a drain: %w", err)
	}
	r := Plan(s, policy, d.o.Now())
	for i := range r.Nodes {
		d.unknownHooks(&r.Nodes[i])
	}
	return r, nil
}

// Preflight says what would stop a drain of these nodes under the policy before its first write, or put it off. It
// reads what [Drainer.Plan] reads, with the same errors.
func (d *Drainer) Preflight(ctx context.Context, policy Policy, nodes ...string) ([]Finding, error) {
	if d == nil || d.registry == nil {
		return nil, option.NotMade("drain.Drainer.Preflight", "drain.New")
	}
	s, err := d.dryRun(ctx, policy, nodes)
	if err != nil {
		return nil, fmt.Errorf("checking what would stop a drain: %w", err)
	}
	return Preflight(s, policy, d.o.Now()), nil
}

// dryRun is the snapshot of nodes as a drain that has not begun sees them.
func (d *Drainer) dryRun(ctx context.Context, policy Policy, nodes []string) (Snapshot, error) {
	if err := policy.Validate(); err != nil {
		return Snapshot{}, err
	}
	if err := d.checkCache(); err != nil {
		return Snapshot{}, err
	}
	if err := d.compareWithServer(ctx, nodes); err != nil {
		return Snapshot{}, err
	}
	views := make([]NodeView, 0, len(nodes))
	for i, name := range nodes {
		node := d.o.Cache.Node(name)
		if node == nil {
			return Snapshot{}, d.nodeMissing(ctx, name)
		}
		if slices.Contains(nodes[:i], name) {
			return Snapshot{}, fmt.Errorf("node %q is named twice", name)
		}
		v := NodeView{Node: node, Pods: d.o.Cache.Pods(name)}
		if err := findPodResponders(ctx, d, policy, &v); err != nil {
			return Snapshot{}, err
		}
		views = append(views, v)
	}
	return d.snapshotOf(policy, views...)
}

// compareWithServer returns an error for the first of the nodes with a pod that the cache does not show.
func (d *Drainer) compareWithServer(ctx context.Context, nodes []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	workers := make(chan struct{}, setWorkers)
	for _, name := range nodes {
		if d.o.Cache.Node(name) == nil {
			continue
		}
		workers <- struct{}{}
		wg.Go(func() {
			defer func() { <-workers }()
			if err := d.comparePods(ctx, name); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// comparePods lists the pods of a node and waits a moment for the cache to show them.
func (d *Drainer) comparePods(ctx context.Context, name string) error {
	live, err := d.o.Client.ListPods(ctx, name)
	if err != nil {
		return fmt.Errorf("comparing the cache with the server: %w", err)
	}
	ticker := time.NewTicker(catchUpInterval)
	defer ticker.Stop()
	end := time.NewTimer(catchUpTime)
	defer end.Stop()
	for {
		missing := missingPods(live, d.o.Cache.Pods(name))
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-end.C:
			return d.stillMissing(ctx, name, missing)
		case <-ticker.C:
		}
	}
}

// stillMissing asks again: a pod that has gone meanwhile does not count.
func (d *Drainer) stillMissing(ctx context.Context, name string, missing map[types.UID]PodRef) error {
	live, err := d.o.Client.ListPods(ctx, name)
	if err != nil {
		return fmt.Errorf("comparing the cache with the server: %w", err)
	}
	shown := len(live)
	var first *PodRef
	for _, pod := range live {
		if ref, ok := missing[pod.UID]; ok {
			shown--
			if first == nil || ref.String() < first.String() {
				first = &ref
			}
		}
	}
	if first == nil {
		return nil
	}
	return &CacheError{Err: fmt.Errorf("it shows %d of the %d pods of node %q, not %q: %w",
		shown, len(live), name, *first, errSelectsTooLittle)}
}

// missingPods are those of live that the cache does not show.
func missingPods(live, cached []*corev1.Pod) map[types.UID]PodRef {
	missing := make(map[types.UID]PodRef, len(live))
	for _, pod := range live {
		missing[pod.UID] = refOf(pod)
	}
	for _, pod := range cached {
		delete(missing, pod.UID)
	}
	return missing
}
