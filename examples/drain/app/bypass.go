// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/belayproject/belay/drain"
)

// A deletingClient deletes a pod where the Drainer evicts it: --disable-eviction. The UID stays the precondition.
type deletingClient struct{ drain.Client }

// Evict deletes the pod. The API server asks no budget.
func (c deletingClient) Evict(ctx context.Context, pod drain.PodRef, gracePeriodSeconds *int64) error {
	return c.Delete(ctx, pod, gracePeriodSeconds)
}

// withoutBudgets is a cache without budgets, since no deletion waits for one.
func withoutBudgets(cache drain.Cache) drain.Cache {
	return rebuildCache(cache, budgetlessCache{cache})
}

type budgetlessCache struct{ drain.Cache }

// Budgets returns none.
func (budgetlessCache) Budgets(string) []*policyv1.PodDisruptionBudget { return nil }

// An unboundPods passes on what a cache knows of pods that are bound to no node, by which a drain ends its watch early.
type unboundPods struct{ cache drain.Cache }

// UnboundPods returns those pods, if the cache knows them.
func (u unboundPods) UnboundPods() (pods []*corev1.Pod, known bool) {
	if c, ok := u.cache.(interface {
		UnboundPods() (pods []*corev1.Pod, known bool)
	}); ok {
		return c.UnboundPods()
	}
	return nil, false
}

// rebuildCache gives changed what the original knows of volumes, owners and unbound pods.
func rebuildCache(original, changed drain.Cache) drain.Cache {
	unbound := unboundPods{original}
	volumes, knowsVolumes := original.(drain.VolumeCache)
	owners, knowsOwners := original.(drain.OwnerCache)
	switch {
	case knowsVolumes && knowsOwners:
		return struct {
			drain.Cache
			drain.VolumeCache
			drain.OwnerCache
			unboundPods
		}{changed, volumes, owners, unbound}
	case knowsOwners:
		return struct {
			drain.Cache
			drain.OwnerCache
			unboundPods
		}{changed, owners, unbound}
	}
	return changed
}

// An overdueFilter hides pods that should have ended longer ago than limit: --skip-wait-for-delete-timeout.
type overdueFilter struct {
	limit time.Duration

	mu     sync.Mutex
	hidden map[string]drain.PodRef // by UID
}

// keepAwaited returns the pods that are still waited for, and remembers the others.
func (f *overdueFilter) keepAwaited(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
		if p.DeletionTimestamp == nil || time.Since(p.DeletionTimestamp.Time) <= f.limit {
			return false
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.hidden[string(p.UID)] = drain.PodRef{Namespace: p.Namespace, Name: p.Name, UID: p.UID}
		return true
	})
}

// skippedPods are the pods that were hidden, in order of their names.
func (f *overdueFilter) skippedPods() []drain.PodRef {
	f.mu.Lock()
	defer f.mu.Unlock()
	var refs []drain.PodRef
	for _, ref := range f.hidden {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b drain.PodRef) int { return cmp.Compare(a.String(), b.String()) })
	return refs
}

// filterCache is c without the hidden pods. It tells of a node each second while pods end there: time alone hides a
// pod.
func (f *overdueFilter) filterCache(c drain.Cache) drain.Cache {
	return rebuildCache(c, filteredCache{c, f})
}

// filterClient is c without the hidden pods.
func (f *overdueFilter) filterClient(c drain.Client) drain.Client { return filteredClient{c, f} }

type filteredCache struct {
	drain.Cache
	filter *overdueFilter
}

// Pods returns the pods of a node that are still waited for.
func (c filteredCache) Pods(node string) []*corev1.Pod {
	return c.filter.keepAwaited(c.Cache.Pods(node))
}

// Watch tells of changes, and each second of each node with a pod that is ending.
func (c filteredCache) Watch(changed func(drain.Change)) (stop func()) {
	end := c.Cache.Watch(changed)
	tick, done := time.NewTicker(time.Second), make(chan struct{})
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			for _, node := range c.Nodes() {
				ending := func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }
				if slices.ContainsFunc(c.Cache.Pods(node.Name), ending) {
					changed(drain.Change{Node: node.Name})
				}
			}
		}
	}()
	return func() {
		end()
		close(done)
	}
}

type filteredClient struct {
	drain.Client
	filter *overdueFilter
}

// ListPods reads the pods of a node that are still waited for.
func (c filteredClient) ListPods(ctx context.Context, node string) ([]*corev1.Pod, error) {
	pods, err := c.Client.ListPods(ctx, node)
	return c.filter.keepAwaited(pods), err
}

// asForced says of every pod that left that it was deleted past its budget.
func asForced(st drain.SetStatus) drain.SetStatus {
	st.Nodes = slices.Clone(st.Nodes)
	for i := range st.Nodes {
		n := &st.Nodes[i]
		if n.Forced = slices.Clone(n.Evicted); len(n.Forced) > 0 && n.Outcome == drain.OutcomeDrained {
			n.Outcome = drain.OutcomeForced
		}
	}
	return st
}
