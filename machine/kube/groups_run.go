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

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// settle is how long changes of a namespace are collected before it is looked at: machines come in crowds.
const settle = 200 * time.Millisecond

// GroupLoop is what [RunGroups] keeps going. Machines are run by [Run].
type GroupLoop struct {
	Controller *controller.GroupController
	Groups     *Groups
	Machines   *Machines
	// Nodes wake the namespaces of their machines; nil is none.
	Nodes *Nodes
}

// RunGroups reconciles each namespace when something in it has changed, until ctx ends. Call it once.
func RunGroups(ctx context.Context, l GroupLoop) error {
	if l.Controller == nil || l.Groups == nil || l.Machines == nil {
		return errors.New("loop: Controller, Groups and Machines are required")
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, time.Minute))
	add := func(namespace string) { queue.AddAfter(namespace, settle) }
	if err := l.Machines.Watch(func(k machine.Key) { add(k.Namespace) }); err != nil {
		return err
	}
	if l.Nodes != nil {
		ofToken := func(token string) { l.Machines.ofToken(token, func(k machine.Key) { add(k.Namespace) }) }
		if err := l.Nodes.Watch(ofToken); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	var watching error
	wg.Go(func() { watching = l.Groups.Run(ctx, add) })
	if waitFor(ctx, func() bool { return l.Machines.Synced() && l.Groups.Synced() }) {
		wg.Go(func() { workGroups(ctx, l, queue) })
		<-ctx.Done()
	}
	queue.ShutDown()
	wg.Wait()
	return watching
}

func workGroups(ctx context.Context, l GroupLoop, queue workqueue.TypedRateLimitingInterface[string]) {
	for {
		namespace, over := queue.Get()
		if over {
			return
		}
		after, err := l.Controller.Reconcile(ctx, namespace)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			klog.FromContext(ctx).Error(err, "Reconciling sets of machines", "namespace", namespace)
			queue.AddRateLimited(namespace)
		default:
			queue.Forget(namespace)
			if after > 0 {
				queue.AddAfter(namespace, after)
			}
		}
		queue.Done(namespace)
	}
}
