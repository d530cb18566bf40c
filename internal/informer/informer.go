// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/client-go/tools/cache"
)

// Interface is what belay needs of a shared informer that its owner runs. cache.SharedIndexInformer of client-go satisfies it,
// and so does what GetInformer of a controller-runtime cache returns.
type Interface interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error
	AddIndexers(indexers cache.Indexers) error
	HasSynced() bool
	IsStopped() bool
}

var (
	// ErrMissing means that an informer is nil.
	ErrMissing = errors.New("the informer is required")
	// ErrNoStore means that an informer has no method GetIndexer: the cache of a manager that watches single namespaces has none.
	ErrNoStore = errors.New("the informer has no method GetIndexer, as one over several namespaces: give one that watches the cluster")
	// ErrNotStarted means that the owner of an informer has not started it.
	ErrNotStarted = errors.New("the informer is not started: start the factory, or the manager, before its consumer")
	// ErrStopped means that the owner of an informer has ended it, so that it shows the past.
	ErrStopped = errors.New("the informer has stopped: run the consumer and the informer under one context")
)

// An Error says what is wrong with the informer that an option names.
type Error struct {
	// Option is the name of the option: "Informers.Pods".
	Option string
	// Err is the cause. Its text says what to change.
	Err error
}

// Error names the option.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Option, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Indexer returns the store of an informer, with these indices besides its own.
func Indexer(option string, i Interface, indexers cache.Indexers) (cache.Indexer, error) {
	if i == nil {
		return nil, &Error{option, ErrMissing}
	}
	if i.IsStopped() {
		return nil, &Error{option, ErrStopped}
	}
	s, ok := i.(interface{ GetIndexer() cache.Indexer })
	if !ok {
		return nil, &Error{option, ErrNoStore}
	}
	store := s.GetIndexer()
	missing := missingFrom(store, indexers)
	if len(missing) == 0 {
		return store, nil
	}
	// Another user of the informer may have added the same index in between.
	if err := i.AddIndexers(missing); err != nil && len(missingFrom(store, missing)) > 0 {
		return nil, &Error{option, fmt.Errorf("adding an index: %w", err)}
	}
	return store, nil
}

// missingFrom returns those of the indexers that a store does not have.
func missingFrom(store cache.Indexer, indexers cache.Indexers) cache.Indexers {
	there, missing := store.GetIndexers(), cache.Indexers{}
	for name, f := range indexers {
		if there[name] == nil {
			missing[name] = f
		}
	}
	return missing
}

const (
	// startTime is how long the owner of an informer has for starting it.
	startTime = time.Second
	// startedEvery is how often [WatchRunning] looks until the informer has synced.
	startedEvery = 50 * time.Millisecond
)

// WatchRunning returns an [Error] when the owner of an informer has not started it within a second, or has ended it
// while ctx goes on, and nil when ctx ends.
func WatchRunning(ctx context.Context, option string, i Interface) error {
	tick := time.NewTicker(startedEvery)
	defer tick.Stop()
	for begun := time.Now(); !i.HasSynced(); {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := CheckStarted(option, i)
		if isNotStarted := errors.Is(err, ErrNotStarted); err != nil && (!isNotStarted || time.Since(begun) > startTime) {
			return err
		}
	}
	return WatchStopped(ctx, option, i)
}

// stoppedEvery is how often [WatchStopped] looks. There is no event for it.
const stoppedEvery = 500 * time.Millisecond

// WatchStopped returns an [Error] when the owner of an informer has ended it while ctx goes on, and nil when ctx ends.
func WatchStopped(ctx context.Context, option string, i Interface) error {
	tick := time.NewTicker(stoppedEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// A manager ends its informers and their consumers at about the same time.
		if err := CheckStopped(option, i); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// CheckStarted returns an [Error] where an informer is known not to run. Those of client-go say so from some version on.
func CheckStarted(option string, i Interface) error {
	if !HasStarted(i) {
		return &Error{option, ErrNotStarted}
	}
	return CheckStopped(option, i)
}

// HasStarted is false where an informer is known not to run.
func HasStarted(i any) bool {
	s, ok := unwrap(i).(interface{ HasStarted() bool })
	return !ok || s.HasStarted()
}

// unwrap returns the informer in structs that embed one, such as the typed informers that factories of client-go give
// since 0.37: those have only the methods of the interface. It returns any other informer as it is.
func unwrap(i any) any {
	for range maxWrappers {
		v := reflect.Indirect(reflect.ValueOf(i))
		if v.Kind() != reflect.Struct {
			return i
		}
		inner := v.FieldByName("SharedIndexInformer")
		if !inner.IsValid() || !inner.CanInterface() || inner.IsZero() {
			return i
		}
		i = inner.Interface()
	}
	return i
}

// maxWrappers bounds unwrap: client-go has two.
const maxWrappers = 10

// CheckStopped returns an [Error] where the owner of an informer has ended it.
func CheckStopped(option string, i Interface) error {
	if i.IsStopped() {
		return &Error{option, ErrStopped}
	}
	return nil
}
