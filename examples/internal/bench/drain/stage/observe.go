// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	retry "k8s.io/client-go/tools/watch"
)

// An Observer follows the pods and the budget of a play in the order in which the API server stored them. It shares nothing with
// what it observes.
type Observer struct {
	mu      sync.Mutex
	pods    map[types.UID]*PodSeen
	healthy int
	pod     int // that exist
	lowest  int
	budgets map[string]policyv1.PodDisruptionBudgetStatus
	budget  policyv1.PodDisruptionBudgetStatus // the sum of them
	opened  []time.Time
	err     error
	changed chan struct{} // closed on the next change
}

// A PodSeen is what was seen of one pod.
type PodSeen struct {
	Name, Node  string
	UID         types.UID
	Asked, Gone time.Time // when it was seen to be ending, and to be gone
	ready       bool
}

// Seen is the state at one moment.
type Seen struct {
	Pods, Healthy, Lowest int
	// Allowed, Counted and Expected are the budgets' disruptionsAllowed, currentHealthy and expectedPods, in all.
	Allowed, Counted, Expected int
	All                        map[types.UID]*PodSeen
}

// On counts the pods that are still on the nodes.
func (s Seen) On(nodes map[string]bool) int {
	n := 0
	for _, p := range s.All {
		if nodes[p.Node] && p.Gone.IsZero() {
			n++
		}
	}
	return n
}

// AskedOff counts the pods that were asked to end on other nodes than these.
func (s Seen) AskedOff(nodes map[string]bool) int {
	n := 0
	for _, p := range s.All {
		if !nodes[p.Node] && !p.Asked.IsZero() {
			n++
		}
	}
	return n
}

func observe(ctx context.Context, client kubernetes.Interface, namespace string) (*Observer, error) {
	o := &Observer{
		pods: map[types.UID]*PodSeen{}, budgets: map[string]policyv1.PodDisruptionBudgetStatus{},
		changed: make(chan struct{}),
	}
	// The namespace is new: nothing is in it that the watches would have to begin with.
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	pods, budgets := client.CoreV1().Pods(namespace), client.PolicyV1().PodDisruptionBudgets(namespace)
	for what, w := range map[string]cache.WatcherWithContext{"pods": watchFunc(pods.Watch), "budgets": watchFunc(budgets.Watch)} {
		// It goes on where it was when the API server ends a watch, as it does with one that reads too slowly.
		events, err := retry.NewRetryWatcherWithContext(ctx, list.ResourceVersion, w)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", what, err)
		}
		go o.follow(ctx, events)
	}
	return o, nil
}

type watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

// WatchWithContext begins a watch.
func (f watchFunc) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return f(ctx, o)
}

// follow takes events until ctx ends. Where the watch cannot go on, the observer has gone blind and says so.
func (o *Observer) follow(ctx context.Context, w watch.Interface) {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-w.ResultChan():
			if ctx.Err() != nil {
				return
			}
			if !open || event.Type == watch.Error {
				o.note(func() { o.err = fmt.Errorf("a watch ended: %v", event.Object) })
				return
			}
			o.note(func() { o.take(event, time.Now()) })
		}
	}
}

func (o *Observer) note(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *Observer) take(event watch.Event, now time.Time) {
	switch object := event.Object.(type) {
	case *corev1.Pod:
		if event.Type != watch.Bookmark {
			o.takePod(object, event.Type == watch.Deleted, now)
		}
	case *policyv1.PodDisruptionBudget:
		if event.Type == watch.Bookmark {
			return
		}
		before := o.budget.DisruptionsAllowed
		o.takeBudget(object.Name, object.Status)
		if before == 0 && o.budget.DisruptionsAllowed > 0 {
			o.opened = append(o.opened, now)
		}
	}
}

// takeBudget keeps the sum of what all budgets say.
func (o *Observer) takeBudget(name string, now policyv1.PodDisruptionBudgetStatus) {
	before := o.budgets[name]
	o.budgets[name] = now
	o.budget.DisruptionsAllowed += now.DisruptionsAllowed - before.DisruptionsAllowed
	o.budget.CurrentHealthy += now.CurrentHealthy - before.CurrentHealthy
	o.budget.ExpectedPods += now.ExpectedPods - before.ExpectedPods
}

func (o *Observer) takePod(pod *corev1.Pod, gone bool, now time.Time) {
	seen := o.pods[pod.UID]
	if seen == nil {
		seen = &PodSeen{Name: pod.Name, UID: pod.UID}
		o.pods[pod.UID] = seen
		o.pod++
	}
	seen.Node = pod.Spec.NodeName
	if seen.Asked.IsZero() && pod.DeletionTimestamp != nil {
		seen.Asked = now
	}
	if gone && seen.Gone.IsZero() {
		seen.Gone = now
		o.pod--
	}
	was := seen.ready
	seen.ready = !gone && pod.DeletionTimestamp == nil && isReady(pod)
	switch {
	case seen.ready && !was:
		o.healthy++
	case was && !seen.ready:
		o.healthy--
		o.lowest = min(o.lowest, o.healthy)
	}
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Arm forgets the lowest number of healthy pods and the openings of the budget so far.
func (o *Observer) Arm() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lowest, o.opened = o.healthy, nil
}

// Opened returns when the budget went from none allowed to some.
func (o *Observer) Opened() []time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]time.Time(nil), o.opened...)
}

// Look calls look with the state of now, while nothing changes. It returns an error where the observer has gone blind.
func (o *Observer) Look(look func(Seen)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	look(o.seen())
	return o.err
}

func (o *Observer) seen() Seen {
	return Seen{
		Pods: o.pod, Healthy: o.healthy, Lowest: o.lowest, All: o.pods,
		Allowed: int(o.budget.DisruptionsAllowed), Counted: int(o.budget.CurrentHealthy), Expected: int(o.budget.ExpectedPods),
	}
}

// Await waits until the state is as asked for.
func (o *Observer) Await(ctx context.Context, is func(Seen) bool) error {
	for {
		o.mu.Lock()
		done, err, changed := is(o.seen()), o.err, o.changed
		o.mu.Unlock()
		switch {
		case err != nil:
			return err
		case done:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
