// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

// syncEvery is the pause between two looks whether the informers have synced.
const syncEvery = 50 * time.Millisecond

// part is one kind of object that a Cache watches.
type part struct {
	store    *cache.Indexer
	resource string
	informer func() cache.SharedIndexInformer
	indexBy  func(obj any) string // for byNode; nil for none
	node     func(obj any) string // what a change is reported as; nil where changes are not reported as a node
}

// informer is a shared informer and what is wrong with it.
type informer struct {
	cache.SharedIndexInformer
	resource string

	mu      sync.Mutex
	failure error
	at      time.Time
	version string // the last resource version that it had heard of at the failure
}

// add makes the informer of a part, with its index and its handlers.
func (c *Cache) add(p part) error {
	inf := &informer{SharedIndexInformer: p.informer(), resource: p.resource}
	if err := inf.SetWatchErrorHandlerWithContext(inf.failed); err != nil {
		return fmt.Errorf("make the cache before the factory starts: %w", err)
	}
	if p.indexBy != nil && inf.GetIndexer().GetIndexers()[byNode] == nil {
		err := inf.AddIndexers(cache.Indexers{byNode: func(obj any) ([]string, error) { return present(p.indexBy(obj)), nil }})
		if err != nil {
			return fmt.Errorf("adding an index: %w", err)
		}
	}
	if _, err := inf.AddEventHandler(c.watchers.handler(p.node)); err != nil {
		return fmt.Errorf("adding a handler: %w", err)
	}
	*p.store = inf.GetIndexer()
	c.informers = append(c.informers, inf)
	return nil
}

// failed keeps the error of a list or watch. The informer tries again by itself.
func (i *informer) failed(ctx context.Context, r *cache.Reflector, err error) {
	cache.DefaultWatchErrorHandler(ctx, r, err)
	if away(err) {
		return
	}
	version := i.LastSyncResourceVersion()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.failure, i.at, i.version = err, time.Now(), version
}

// away reports whether an error is that of an API server that gave no answer, or none yet: its watches come back with it, and whoever waits for it is not refused.
func away(err error) bool {
	var unanswered *url.Error
	return errors.As(err, &unanswered) || errors.Is(err, context.DeadlineExceeded) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// quiet is how long after a failure no other one means that the watch has come back, though it has had nothing to tell: an informer tries again within a
// minute.
const quiet = 2 * time.Minute

// check says what is wrong with the informer. A failure is over when the informer has heard of a later version, or has not failed again for two minutes.
func (i *informer) check() error {
	synced, version := i.HasSynced(), i.LastSyncResourceVersion()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failure != nil && version == i.version && time.Since(i.at) < quiet {
		return &InformerError{Resource: i.resource, Synced: synced, Err: i.failure}
	}
	i.failure = nil
	if !synced {
		return &InformerError{Resource: i.resource, Err: errNoAnswer}
	}
	return nil
}

var errNoAnswer = errors.New("not started, or the API server has not answered yet")

// An InformerError says which informer of a [Cache] lags, and why.
type InformerError struct {
	// Resource is what it watches: "pods".
	Resource string
	// Synced is true where the Cache has seen all objects once, and is now out of date.
	Synced bool
	// Err is the last error of its list or watch. For a missing right it names user, verb and resource.
	Err error
}

// Error names the resource and the cause.
func (e *InformerError) Error() string {
	if e.Synced {
		return fmt.Sprintf("informer of %s is out of date: %v", e.Resource, e.Err)
	}
	return fmt.Sprintf("informer of %s has not synced: %v", e.Resource, e.Err)
}

// Unwrap returns the cause.
func (e *InformerError) Unwrap() error { return e.Err }

// Synced says whether every informer has seen all objects once.
func (c *Cache) Synced() bool {
	for _, i := range c.informers {
		if !i.HasSynced() {
			return false
		}
	}
	return true
}

// Check returns nil if the Cache has synced and no watch is refused, or else an [InformerError] for each informer. A watch that came back
// still counts as failing until it hears something, or has not failed again for two minutes. Watches wait for an API server
// that can't be reached or is overloaded: that is no answer yet for a Cache that has not synced, and not noticed here by one that has.
func (c *Cache) Check() error {
	var errs []error
	for _, i := range c.informers {
		errs = append(errs, i.check())
	}
	return errors.Join(errs...)
}

// WaitForSync waits until [Cache.Check] finds nothing. If ctx ends first, the error holds what it found. The Cache then shows what the API server
// had when the factory was started, where server and client stream lists (WatchList, the default from Kubernetes 1.34 and client-go
// 0.35 on); elsewhere what the API server's own cache had, which is behind by less than a second in health.
func (c *Cache) WaitForSync(ctx context.Context) error {
	ticker := time.NewTicker(syncEvery)
	defer ticker.Stop()
	for {
		err := c.Check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the cache: %w: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

func nodeOfNode(obj any) string {
	if node, ok := obj.(*corev1.Node); ok {
		return node.Name
	}
	return ""
}

func nodeOfPod(obj any) string {
	if pod, ok := obj.(*corev1.Pod); ok {
		return pod.Spec.NodeName
	}
	return ""
}

func nodeOfAttachment(obj any) string {
	if attachment, ok := obj.(*storagev1.VolumeAttachment); ok {
		return attachment.Spec.NodeName
	}
	return ""
}

// present leaves out the empty string.
func present(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}
