// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/informer"
	"github.com/belayproject/belay/internal/watch"
)

// An Informer is a shared informer that its owner runs. cache.SharedIndexInformer of client-go satisfies it, and so
// does what GetInformer of a controller-runtime cache returns.
type Informer = informer.Interface

// An InformerError says what is wrong with the [Informer] that an option names.
type InformerError = informer.Error

var (
	errDropsField = errors.New("it drops a field that is read: give one of unstructured objects whose transform keeps it")
	errNotShown   = errors.New("it selects too little: select the object of this node, or all")
)

const (
	// compareAgain is the pause after a comparison to which the API server gave no answer.
	compareAgain = time.Second
	// syncedEvery is how often a watch looks whether an informer has synced.
	syncedEvery = 20 * time.Millisecond
)

// A sharedInformer is one that an embedder runs. It saves a watch; what it shows is believed once it was compared with
// the API server.
type sharedInformer struct {
	option   string
	informer Informer
	store    cache.Indexer
	failed   chan error // has a value after wrong was set

	mu    sync.Mutex
	wrong error // an InformerError; nil while nothing is known to be wrong; guarded by mu
}

// newShared returns nil where the option is not set.
func newShared(option string, i Informer) (*sharedInformer, error) {
	if i == nil {
		return nil, nil //nolint:nilnil // without the option there is none
	}
	store, err := informer.Indexer(option, i, nil)
	if err != nil {
		return nil, err
	}
	return &sharedInformer{option: option, informer: i, store: store, failed: make(chan error, 1)}, nil
}

// findProblem returns what is wrong with the informer, as a reason for which a source has no answer.
func (i *sharedInformer) findProblem() error {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	wrong := i.wrong
	i.mu.Unlock()
	if wrong == nil {
		wrong = informer.CheckStopped(i.option, i.informer)
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", configsync.ErrUnreachable, wrong)
}

func (i *sharedInformer) setWrong(wrong error) {
	i.mu.Lock()
	i.wrong = wrong
	i.mu.Unlock()
	if wrong == nil {
		return
	}
	select {
	case i.failed <- wrong:
	default:
	}
}

// watchTarget is caller.watchSeen over an informer. It returns an [InformerError] where that does not run, drops a
// field or does not show the target, and nil when ctx ends.
func (i *sharedInformer) watchTarget(ctx context.Context, c caller, at target, t trigger) error {
	ctx, stop := context.WithCancelCause(ctx)
	var runs sync.WaitGroup
	runs.Go(func() {
		if err := informer.WatchRunning(ctx, i.option, i.informer); err != nil {
			stop(err)
		}
	})
	for ctx.Err() == nil {
		there, version, wrong := i.compareTarget(ctx, c, at)
		if wrong != nil {
			stop(&InformerError{Option: i.option, Err: wrong})
		}
		if ctx.Err() == nil {
			i.setWrong(nil)
			if err := i.followTarget(ctx, t, there, version); err != nil {
				stop(cmp.Or(informer.CheckStopped(i.option, i.informer), error(&InformerError{Option: i.option, Err: err})))
			}
			backoff.Sleep(ctx, compareAgain) // it has shown what it did not show before: compare again
		}
	}
	runs.Wait()
	stop(nil)
	var wrong *InformerError
	if errors.As(context.Cause(ctx), &wrong) {
		i.setWrong(wrong)
		return wrong
	}
	return nil
}

// compareTarget waits until the informer has synced and returns what is wrong with what it shows of the target. there
// says that the API server has the target, and a spec in it: without one, a transform that drops it would not show.
// version is what the API server has.
func (i *sharedInformer) compareTarget(
	ctx context.Context, c caller, at target,
) (there bool, version string, wrong error) {
	if !waitFor(ctx, i.informer.HasSynced) {
		return false, "", nil
	}
	sample := informer.Sample{
		Resource: at.resource.Resource, Store: i.store, Informer: i.informer, Fields: fieldsRead,
		FieldMissing: errDropsField, SelectsTooLittle: errNotShown,
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			watch.SelectName(at.name)(&o)
			list, err := c.at(at).List(ctx, o)
			if err != nil {
				return nil, err
			}
			there = len(list.Items) > 0 && list.Items[0].Object["spec"] != nil
			if len(list.Items) > 0 {
				version = list.Items[0].GetResourceVersion()
			}
			return list, nil
		},
	}
	for {
		wrong, err := sample.Compare(ctx)
		if wrong != nil || err == nil || ctx.Err() != nil {
			return there, version, wrong
		}
		klog.FromContext(ctx).Error(err, "Comparing an informer with the API server", "option", i.option)
		select {
		case <-ctx.Done():
			return false, "", nil
		case <-time.After(compareAgain):
		}
	}
}

// fieldsRead are what is read of a NodeConfig.
func fieldsRead(obj any) []informer.Field {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	return []informer.Field{
		{Name: "metadata.generation", Value: u.GetGeneration()}, {Name: "spec", Value: u.Object["spec"]},
		{Name: "status", Value: u.Object["status"]},
	}
}

// followTarget gives events to a trigger until ctx ends. A target that could not be compared is not believed: it is
// read, and followTarget returns when the informer shows it in another version, so that it can be compared.
func (i *sharedInformer) followTarget(ctx context.Context, t trigger, compared bool, version string) error {
	if !compared {
		t.seen = nil
	}
	var mu sync.Mutex // of t
	appeared := make(chan struct{}, 1)
	add := func(obj any) {
		mu.Lock()
		defer mu.Unlock()
		_ = t.Add(obj) // what is no unstructured object is not the target
		u, ok := obj.(*unstructured.Unstructured)
		if ok && u.GetName() == t.name && !compared && u.GetResourceVersion() != version {
			select {
			case appeared <- struct{}{}:
			default:
			}
		}
	}
	handle, err := i.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(old, obj any) {
			if !isSameVersion(old, obj) { // a resync is no word of the API server
				add(obj)
			}
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			mu.Lock()
			defer mu.Unlock()
			_ = t.Delete(obj)
		},
	})
	if err != nil {
		return err
	}
	defer func() {
		_ = i.informer.RemoveEventHandler(handle) // of an informer that has stopped there is nothing to remove
		mu.Lock()
		defer mu.Unlock()
		if t.known {
			t.seen.follow(-1)
		}
		t.seen, t.changed = nil, func() {} // an event may be under way
	}()
	if !waitFor(ctx, handle.HasSynced) {
		return nil
	}
	mu.Lock()
	if !t.known {
		t.gone()
	}
	mu.Unlock()
	select {
	case <-ctx.Done():
	case <-appeared:
	}
	return nil
}

func isSameVersion(a, b any) bool {
	old, isObject := a.(*unstructured.Unstructured)
	now, isToo := b.(*unstructured.Unstructured)
	return isObject && isToo && old.GetUID() == now.GetUID() && old.GetResourceVersion() == now.GetResourceVersion()
}

// waitFor waits until a condition holds, and reports whether it does: not if ctx ends first.
func waitFor(ctx context.Context, holds func() bool) bool {
	tick := time.NewTicker(syncedEvery)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}
