// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// Loop is what [Run] keeps going.
type Loop struct {
	Controller *controller.Controller
	Machines   Machines
	Nodes      Nodes
	// Workers is how many machines are worked at at once; 0 is 8. None of them waits for an instance or a drain.
	Workers int
	// Drains tells of Nodes whose drain has reason to go on before its time; nil is none: then a drain that waits for others is looked at every 10 s.
	Drains Drains
	// SurveyEvery is how often the provider is asked for its list; 0 is a minute.
	SurveyEvery time.Duration
}

// Drains tells of Nodes by name: drain.Drainer is one.
type Drains interface {
	// Watch calls changed, which does not block, until stop is called.
	Watch(changed func(node string)) (stop func())
}

// Run reconciles each machine when it has changed, when its Node has, and when it asked for it, until ctx ends, or
// returns at once why it can't. The informer of Nodes is started by its owner: where that has not happened within a
// second, where it drops a field or does not show all Nodes, or where the owner stops it while ctx goes on, Run returns
// an [InformerError]. What fails meanwhile is logged as it comes. Call it once.
func Run(ctx context.Context, l Loop) error {
	check := option.For("machine/kube.Run", nil)
	check.Require("Loop.Controller", l.Controller, "see machine/controller.New")
	check.Require("Loop.Machines", l.Machines, "see NewMachines")
	check.Require("Loop.Nodes", l.Nodes, "see NewNodes")
	if err := check.Err(); err != nil {
		return err
	}
	machines, nodes := l.Machines.asStore(), l.Nodes.asStore()
	machines.nodeOf = nodes.one
	queue := newQueue[machine.Key]()
	unwatch, err := nodes.watch(func(token string) { machines.ofToken(token, queue.Add) })
	if err != nil {
		return err
	}
	defer unwatch()
	if l.Drains != nil {
		if stop := l.Drains.Watch(func(node string) { l.ofNode(node, queue.Add) }); stop != nil {
			defer stop()
		}
	}
	return looped(ctx, queue, func(ctx context.Context) error { return l.watch(ctx, queue.Add) }, machines.Synced, func(ctx context.Context, wg *sync.WaitGroup) {
		for range workers(l.Workers) {
			wg.Go(func() { work(ctx, queue, refusing(l.Controller.Reconcile, machines.refuse), "machine") })
		}
		wg.Go(func() { survey(ctx, l, queue.Add) })
	}, func(ctx context.Context) { nodes.probeEvery(ctx, 10*time.Second) })
}

// watch watches machines, and the informer of Nodes, until ctx ends or one of the two can't go on.
func (l Loop) watch(ctx context.Context, changed func(machine.Key)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	nodes := make(chan error, 1)
	go func() {
		defer stop()
		nodes <- l.Nodes.asStore().watchInformer(ctx, "Loop.Nodes")
	}()
	err := l.Machines.Run(ctx, changed)
	stop()
	return errors.Join(err, <-nodes)
}

// ofNode tells of the machine of a Node, if it is being changed or ended: others have no drain.
func (l Loop) ofNode(name string, f func(machine.Key)) {
	token := l.Nodes.asStore().tokenOf(name)
	if token == "" {
		return
	}
	machines := l.Machines.asStore()
	machines.ofToken(token, func(key machine.Key) {
		if m := machines.seen(key); m != nil && (m.Status.Update != nil || m.Status.Release != nil) {
			f(key)
		}
	})
}

// looped watches, and has the workers begin once everything is there, until ctx ends or the watch has failed.
func looped[K comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], watch func(context.Context) error, synced func() bool,
	begin func(context.Context, *sync.WaitGroup), beside ...func(context.Context),
) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var watching error
	wg.Go(func() {
		defer stop() // without a watch there is nothing to work on
		if watching = watch(ctx); watching != nil {
			klog.FromContext(ctx).Error(watching, "Watching")
		}
	})
	for _, f := range beside {
		wg.Go(func() { f(ctx) })
	}
	if waitFor(ctx, synced) {
		begin(ctx, &wg)
		<-ctx.Done()
	}
	queue.ShutDown()
	wg.Wait()
	return watching
}

func workers(n int) int {
	if n <= 0 {
		return 8
	}
	return n
}

// work takes keys from the queue until it is shut down.
func work[K comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], reconcile func(context.Context, K) (time.Duration, error), of string) {
	for {
		key, over := queue.Get()
		if over {
			return
		}
		after, err := reconcile(ctx, key)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			klog.FromContext(ctx).Error(err, "Reconciling", "kind", of, "key", key)
			queue.AddRateLimited(key)
		default:
			queue.Forget(key)
			if after > 0 {
				queue.AddAfter(key, after)
			}
		}
		queue.Done(key)
	}
}

// newQueue backs off from 100 ms to a minute.
func newQueue[K comparable]() workqueue.TypedRateLimitingInterface[K] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[K](100*time.Millisecond, time.Minute))
}

func survey(ctx context.Context, l Loop, add func(machine.Key)) {
	every := l.SurveyEvery
	if every <= 0 {
		every = time.Minute
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		changed, err := l.Controller.Survey(ctx)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Surveying instances")
		}
		for _, key := range changed {
			add(key)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// waitFor asks ten times a second.
func waitFor(ctx context.Context, there func() bool) bool {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !there() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}
