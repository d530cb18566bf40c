// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/evictionapi"
)

const (
	targetIndex  = "target"
	workers      = 8
	firstRetry   = 100 * time.Millisecond
	longestRetry = time.Minute
	syncPause    = 20 * time.Millisecond
)

// A targetFunc returns the pod that an object is about, or false for an object that names none.
type targetFunc func(u *unstructured.Unstructured) (drain.PodRef, bool)

func requestTarget(u *unstructured.Unstructured) (drain.PodRef, bool) {
	r, err := evictionapi.DecodeRequest(u)
	if err != nil {
		return drain.PodRef{}, false
	}
	return refOf(r.Namespace, r.Spec.Target)
}

func evictionTarget(u *unstructured.Unstructured) (drain.PodRef, bool) {
	e, err := evictionapi.DecodeEviction(u)
	if err != nil {
		return drain.PodRef{}, false
	}
	return refOf(e.Namespace, e.Spec.Target)
}

func refOf(namespace string, target evictionapi.Target) (drain.PodRef, bool) {
	if target.Pod == nil {
		return drain.PodRef{}, false
	}
	return drain.PodRef{Namespace: namespace, Name: target.Pod.Name, UID: target.Pod.UID}, true
}

func indexKey(target drain.PodRef) string {
	return target.Namespace + "/" + target.Name + "/" + string(target.UID)
}

// byTarget indexes objects by the pod that they are about.
func byTarget(targetOf targetFunc) cache.Indexers {
	return cache.Indexers{targetIndex: func(object any) ([]string, error) {
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return nil, nil
		}
		target, ok := targetOf(u)
		if !ok {
			return nil, nil
		}
		return []string{indexKey(target)}, nil
	}}
}

// A loop reconciles pods of which something has changed.
type loop struct {
	queue     workqueue.TypedRateLimitingInterface[drain.PodRef]
	reconcile func(context.Context, drain.PodRef) (time.Duration, error)
}

func newLoop(reconcile func(context.Context, drain.PodRef) (time.Duration, error)) *loop {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[drain.PodRef](firstRetry, longestRetry)
	return &loop{queue: workqueue.NewTypedRateLimitingQueue(limiter), reconcile: reconcile}
}

func (l *loop) addTarget(target drain.PodRef) { l.queue.Add(target) }

// followInformer adds the pod of each object that changes.
func (l *loop) followInformer(informer cache.SharedIndexInformer, targetOf targetFunc) error {
	changed := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if u, ok := object.(*unstructured.Unstructured); ok {
			if target, ok := targetOf(u); ok {
				l.addTarget(target)
			}
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }, DeleteFunc: changed,
	})
	return err
}

// runWorkers runs the informers, and the workers once they and the pods have synced, until ctx ends.
func (l *loop) runWorkers(ctx context.Context, pods drain.Cache, informers ...cache.SharedIndexInformer) {
	var wg sync.WaitGroup
	for _, informer := range informers {
		wg.Go(func() { informer.RunWithContext(ctx) })
	}
	if waitSynced(ctx, pods, informers) {
		for range workers {
			wg.Go(func() { l.processQueue(ctx) })
		}
	}
	<-ctx.Done()
	l.queue.ShutDown()
	wg.Wait()
}

func waitSynced(ctx context.Context, pods drain.Cache, informers []cache.SharedIndexInformer) bool {
	look := time.NewTicker(syncPause)
	defer look.Stop()
	for {
		synced := pods.Check() == nil
		for _, informer := range informers {
			synced = synced && informer.HasSynced()
		}
		if synced {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
		}
	}
}

// processQueue reconciles until the queue is shut down.
func (l *loop) processQueue(ctx context.Context) {
	for {
		target, over := l.queue.Get()
		if over {
			return
		}
		after, err := l.reconcile(ctx, target)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			klog.FromContext(ctx).Error(err, "Reconciling an eviction", "pod", target.Key(), "uid", target.UID)
			l.queue.AddRateLimited(target)
		default:
			l.queue.Forget(target)
			if after > 0 {
				l.queue.AddAfter(target, after)
			}
		}
		l.queue.Done(target)
	}
}
