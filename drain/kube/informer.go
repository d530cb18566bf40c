// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
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

	"github.com/belayproject/belay/drain"
	shared "github.com/belayproject/belay/internal/informer"
)

// informer is an informer and what is wrong with it.
type informer struct {
	Informer
	resource string
	option   string // the field of [Informers]; empty where the informer comes from a factory
	handler  cache.ResourceEventHandlerRegistration

	mu      sync.Mutex
	failure error
	at      time.Time
	version string // the last resource version that it had heard of at the failure
}

// hasStarted is false where the informer is known not to run.
func (i *informer) hasStarted() bool { return shared.HasStarted(i.Informer) }

// lastVersion is empty for an informer that does not tell.
func (i *informer) lastVersion() string {
	if v, ok := i.Informer.(interface{ LastSyncResourceVersion() string }); ok {
		return v.LastSyncResourceVersion()
	}
	return ""
}

// failed keeps the error of a list or watch. The informer tries again by itself.
func (i *informer) failed(ctx context.Context, r *cache.Reflector, err error) {
	cache.DefaultWatchErrorHandler(ctx, r, err)
	if away(err) {
		return
	}
	version := i.lastVersion()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.failure, i.at, i.version = err, time.Now(), version
}

// away reports whether an error is that of an API server that gave no answer, or none yet, or no longer has the version that a watch began
// with: its watches come back by themselves, and nothing is refused.
func away(err error) bool {
	var unanswered *url.Error
	return errors.As(err, &unanswered) || errors.Is(err, context.DeadlineExceeded) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// quiet is how long after a failure no other one means that the watch has come back, though it has had nothing to tell: an informer tries again within a
// minute.
const quiet = 2 * time.Minute

// check says what is wrong with the informer. A failure is over when the informer has heard of a later version, or has not failed again for two minutes.
func (i *informer) check() error {
	synced, version := i.HasSynced(), i.lastVersion()
	if i.IsStopped() {
		return i.wrong(synced, ErrInformerStopped)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failure != nil && version == i.version && time.Since(i.at) < quiet {
		return i.wrong(synced, i.failure)
	}
	i.failure = nil
	switch {
	case synced:
		return nil
	case !i.hasStarted():
		return i.wrong(false, ErrInformerNotStarted)
	default:
		return i.wrong(false, errNoAnswer)
	}
}

// wrong is an error about the informer.
func (i *informer) wrong(synced bool, err error) *InformerError {
	return &InformerError{Resource: i.resource, Option: i.option, Synced: synced, Err: err}
}

// Errors of informers, wrapped by an [InformerError].
var (
	// ErrInformerNotStarted is for an informer that its owner has not started.
	ErrInformerNotStarted = errors.New("not started: start the factory, or the manager, before the cache is used")
	// ErrInformerStopped is for an informer that its owner has stopped. It shows the past, and never starts again.
	// It wraps [drain.ErrCacheStopped].
	ErrInformerStopped = fmt.Errorf("%w: end the drains with the context or the manager that ends its informers", drain.ErrCacheStopped)
	// ErrFieldMissing is for an informer with a transform that drops what a drain reads.
	ErrFieldMissing = errors.New("its transform drops a field that a drain reads: keep what drain/kube.Transform keeps")
	// ErrSelectsTooLittle is for an informer that does not show everything.
	ErrSelectsTooLittle = errors.New("it selects too little: watch all namespaces, without a label or field selector")

	errNoAnswer    = errors.New("the API server has not answered yet")
	errNoStore     = errors.New("it has no method GetIndexer, as one over several namespaces: give one that watches the cluster")
	errNotCompared = errors.New("the cache has not been compared with the API server yet: call WaitForSync before it is used")
	errClosed      = fmt.Errorf("%w: it is closed", drain.ErrCacheStopped)
)

// An InformerError says which informer of a [Cache] cannot be used, and why.
type InformerError struct {
	// Resource is what it watches: "pods".
	Resource string
	// Option is the field that it was given in: "Informers.Pods". It is empty for an informer of a factory.
	Option string
	// Synced is true where the Cache has seen all objects once, and is now out of date.
	Synced bool
	// Err is one of the errors of this package, or the last one of its list or watch. For a missing right it names user, verb and resource.
	Err error
}

// Error names the option, the resource and the cause.
func (e *InformerError) Error() string {
	name := "informer of " + e.Resource
	if e.Option != "" {
		name = e.Option + ": " + name
	}
	if e.Synced {
		return fmt.Sprintf("%s is out of date: %v", name, e.Err)
	}
	return fmt.Sprintf("%s has not synced: %v", name, e.Err)
}

// Unwrap returns the cause.
func (e *InformerError) Unwrap() error { return e.Err }

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

// nodeOrUnbound is the value of a pod in the index byNode.
func nodeOrUnbound(obj any) string { return cmp.Or(nodeOfPod(obj), unbound) }

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
