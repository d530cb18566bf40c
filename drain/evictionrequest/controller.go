// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/evictionapi"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/watch"
)

// lateRequeue is when a decision is made again that the watch was too late for.
const lateRequeue = 200 * time.Millisecond

// nodelessRequeue is how often a pod without a node is looked at while it is being evicted.
const nodelessRequeue = 10 * time.Second

// IsServed reports whether the API server serves the EvictionRequest API. It makes one request, which ctx bounds. An
// error means that the answer is unknown.
func IsServed(ctx context.Context, client discovery.DiscoveryInterface) (bool, error) {
	const remedy = "see k8s.io/client-go/discovery.NewDiscoveryClientForConfig"
	if err := option.CheckRequired("drain/evictionrequest.IsServed", "client", client, remedy); err != nil {
		return false, err
	}
	return evictionapi.IsServed(ctx, client)
}

// Options are those of [NewController] and of [NewResponder]. Client and Pods are required.
type Options struct {
	// Client reads and writes EvictionRequests and Evictions, and reads the fields of a Pod that old types do not have.
	Client dynamic.Interface
	// Pods is the process's view of pods: see drain/kube.NewCache. It must know every pod of the cluster.
	Pods drain.Cache
	// Evict sends evictions. A Responder needs it, a Controller does not.
	Evict drain.Client
	// Namespace is the only one in which EvictionRequests and Evictions are looked after. Empty is every namespace.
	Namespace string
	// Now is the clock, nil for time.Now. The API server refuses a start time that is 30 s away from its own clock.
	Now func() time.Time
}

// A Controller does the work of the evictionrequest-controller. Make it with [NewController].
type Controller struct {
	client    dynamic.Interface
	pods      drain.Cache
	now       func() time.Time
	requests  cache.SharedIndexInformer
	evictions cache.SharedIndexInformer

	mu      sync.Mutex
	seen    map[drain.PodRef]*sighting
	created map[drain.PodRef]types.NamespacedName // Evictions that the watch may not have shown yet
}

// A sighting is what a process remembers of a target.
type sighting struct {
	node  string
	pod   podState  // at the last look
	ended time.Time // when it was first seen terminal or gone
}

// NewController returns a Controller. It makes no request. An error is an OptionError that names every option that is
// missing.
func NewController(o Options) (*Controller, error) {
	check := option.For("drain/evictionrequest.NewController", nil)
	checkOptions(check, o)
	if err := check.Err(); err != nil {
		return nil, err
	}
	c := &Controller{
		client: o.Client, pods: o.Pods, now: clockOr(o.Now),
		seen: map[drain.PodRef]*sighting{}, created: map[drain.PodRef]types.NamespacedName{},
	}
	c.requests = watch.NewInformer(o.Client, evictionapi.RequestsResource(), o.Namespace, byTarget(requestTarget), nil)
	c.evictions = watch.NewInformer(o.Client, evictionapi.EvictionsResource(), o.Namespace, byTarget(evictionTarget), nil)
	return c, nil
}

func checkOptions(check *option.Checker, o Options) {
	check.Require("Options.Client", o.Client, "see k8s.io/client-go/dynamic.NewForConfig")
	check.Require("Options.Pods", o.Pods, "see drain/kube.NewCache")
}

func clockOr(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}

// Reconcile makes one bounded pass over the EvictionRequests and Evictions of a pod. It returns when to call it again
// without a trigger: zero is never. An error means that a write or a read has failed; the next pass goes on. [Run] must
// be running, since the objects come from its watches. Passes over different pods may run side by side.
func (c *Controller) Reconcile(ctx context.Context, target drain.PodRef) (time.Duration, error) {
	if c == nil || c.client == nil {
		return 0, option.NotMade("drain/evictionrequest.Controller.Reconcile", "drain/evictionrequest.NewController")
	}
	o, err := c.observe(ctx, target)
	if err != nil {
		return 0, fmt.Errorf("evictionrequest: observing pod %s: %w", target.Key(), err)
	}
	if len(o.requests) == 0 && len(o.evictions) == 0 {
		c.forgetTarget(target)
		return 0, nil
	}
	d := decideWrites(o)
	err = c.carryOut(ctx, target, d)
	if apierrors.IsConflict(err) || errors.Is(err, errNotSeen) {
		return lateRequeue, nil // decided on what is not so any more
	}
	if err != nil {
		return 0, fmt.Errorf("evictionrequest: pod %s: %w", target.Key(), err)
	}
	return c.boundRequeue(target, d), nil
}

// boundRequeue returns when to look again. The cache tells of no change of a pod that is on no node.
func (c *Controller) boundRequeue(target drain.PodRef, d decision) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.seen[target]; d.after > nodelessRequeue && (s == nil || s.node == "") {
		return nodelessRequeue
	}
	return d.after
}

// Run watches EvictionRequests, Evictions and pods, and calls [Controller.Reconcile] for each pod of which something
// has changed, until ctx ends or a watch cannot be set up. It may be called once.
func (c *Controller) Run(ctx context.Context) error {
	if c == nil || c.client == nil {
		return option.NotMade("drain/evictionrequest.Controller.Run", "drain/evictionrequest.NewController")
	}
	q := newLoop(c.Reconcile)
	defer q.queue.ShutDown()
	stop := c.pods.Watch(func(change drain.Change) {
		for _, target := range c.changedOn(change.Node) {
			q.addTarget(target)
		}
	})
	if stop != nil {
		defer stop()
	}
	err := q.followInformer(c.requests, requestTarget)
	if err == nil {
		err = q.followInformer(c.evictions, evictionTarget)
	}
	if err != nil {
		return fmt.Errorf("evictionrequest: %w", err)
	}
	q.runWorkers(ctx, c.pods, c.requests, c.evictions)
	return nil
}

// changedOn returns the targets that were on a node when they were last looked at, and whose pods have come further
// since. Nothing else that changes of a pod matters.
func (c *Controller) changedOn(node string) []drain.PodRef {
	c.mu.Lock()
	defer c.mu.Unlock()
	var targets []drain.PodRef
	for target, s := range c.seen {
		if s.node == node && s.pod != cachedState(c.pods, target) {
			targets = append(targets, target)
		}
	}
	return targets
}

// cachedState is how far the pod has come, as the cache shows it.
func cachedState(pods drain.Cache, target drain.PodRef) podState {
	pod := pods.Pod(target.Namespace, target.Name)
	if pod == nil || pod.UID != target.UID {
		return podGone
	}
	return stateOf(pod.DeletionTimestamp, pod.Status.Phase)
}

func (c *Controller) forgetTarget(target drain.PodRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, target)
	delete(c.created, target)
}
