// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/option"
)

const (
	// workers is how many objects are worked on at a time.
	workers = 4
	// quiet gathers the changes of a node's pods into one pass.
	quiet = 100 * time.Millisecond
	// retryFirst and retryMost bound the back-off after an error.
	retryFirst, retryMost = 200 * time.Millisecond, time.Minute
	// forgetTime bounds what Run does after its context has ended.
	forgetTime = 10 * time.Second
)

// Run reconciles each object when it or one of its nodes has changed, and when it asked for it, until ctx ends, or
// returns at once why it can't. What fails meanwhile is logged as it comes. The Cache has to be synced. Nodes stay as
// they are when Run ends: the next one goes on. Call it once.
func (r *Reconciler) Run(ctx context.Context) error {
	if r == nil || r.known == nil {
		return option.NotMade("drain/maintenance.Reconciler.Run", "maintenance.New")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	backOff := workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryFirst, retryMost)
	queue := workqueue.NewTypedRateLimitingQueue(backOff)
	unwatch := r.o.Drainer.Watch(func(node string) {
		for _, name := range r.objectsOfNode(node, false) {
			queue.AddAfter(name, quiet)
		}
	})
	defer unwatch()
	unwatchNodes := r.o.Cache.Watch(func(c drain.Change) {
		for _, name := range r.objectsOfNode(c.Node, true) {
			queue.AddAfter(name, quiet)
		}
	})
	if unwatchNodes != nil {
		defer unwatchNodes()
	}
	var wg sync.WaitGroup
	var watching error
	wg.Go(func() {
		defer stop()
		watching = r.o.Client.Watch(ctx, queue.Add)
	})
	wg.Go(func() { r.sweepOrphans(ctx) })
	for range workers {
		wg.Go(func() { r.processQueue(ctx, queue, backOff) })
	}
	<-ctx.Done()
	queue.ShutDown()
	wg.Wait()
	r.forgetAll(ctx)
	return watching
}

// processQueue takes names from the queue until it is shut down.
func (r *Reconciler) processQueue(
	ctx context.Context, queue workqueue.TypedRateLimitingInterface[string], backOff workqueue.TypedRateLimiter[string],
) {
	for {
		name, shutdown := queue.Get()
		if shutdown {
			return
		}
		if ctx.Err() == nil {
			after, err := r.Reconcile(ctx, name)
			if err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Reconciling", "nodeMaintenance", name)
				// No later than a node of the object asks for: a held one counts on it.
				after = earlierOf(backOff.When(name), max(after, soon))
			} else {
				backOff.Forget(name)
			}
			if after > 0 {
				queue.AddAfter(name, after)
			}
		}
		queue.Done(name)
	}
}

// sweepOrphans gives back what objects have left that went while no process was there, until that has succeeded once.
func (r *Reconciler) sweepOrphans(ctx context.Context) {
	for failures := 0; ; failures++ {
		after, err := r.releaseOrphans(ctx)
		if err == nil && after == 0 || ctx.Err() != nil {
			return
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "Giving back nodes of NodeMaintenances that do not exist")
		}
		if !backoff.Sleep(ctx, max(after, backoff.After(failures, retryFirst, retryMost))) {
			return
		}
	}
}

// objectsOfNode names the objects that a node is meant by. edges leaves out those whose last pass has seen the node
// as it is now, by its UID.
func (r *Reconciler) objectsOfNode(node string, edges bool) []string {
	if node == "" {
		return nil
	}
	n := r.o.Cache.Node(node)
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for name, k := range r.known {
		meant := k.spec.NodeName == node
		if selector, err := selectorOf(k.spec.NodeSelector); err == nil && selector != nil && n != nil {
			meant = selector.Matches(labels.Set(n.Labels))
		}
		known := false
		if k.last != nil {
			i := slices.IndexFunc(k.last.Nodes, func(s drain.Status) bool { return s.Node == node })
			known = i >= 0 && n != nil && k.last.Nodes[i].NodeUID == n.UID
			meant = meant || i >= 0
		}
		if meant && !(edges && known) {
			names = append(names, name)
		}
	}
	return names
}

// forgetAll has the Drainer forget what another process goes on with.
func (r *Reconciler) forgetAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTime)
	defer cancel()
	r.mu.Lock()
	names := make([]string, 0, len(r.known))
	for name := range r.known {
		names = append(names, name)
	}
	r.mu.Unlock()
	for _, name := range names {
		r.forgetObject(ctx, name)
	}
}
