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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/option"
)

// A watchState notes what goes wrong with the list and watch of an informer.
type watchState struct {
	resource string
	informer cache.SharedIndexInformer

	mu      sync.Mutex
	failure error
	at      time.Time
	version string // the last resource version that the informer had heard of at the failure
}

// quiet is how long after a failure no other one means that the watch has come back, though it has had nothing to tell: an informer tries again within a
// minute.
const quiet = 2 * time.Minute

// NoteWatchErrors takes over the handler of watch errors of an informer that has not been started, or else it fails. The
// resource is the plural: "deployments". A [Cache] and a [LedgerStore] look after their own informers.
//
// check returns nil if the informer has seen all objects once and its watch is not refused, or else an error that names
// the resource and why its watch lags. A watch that came back still counts as failing until it hears something, or has
// not failed again for two minutes. One that waits for an API server that can't be reached, or is overloaded, is not
// noticed. check may be called from several goroutines.
func NoteWatchErrors(informer cache.SharedIndexInformer, resource string) (check func() error, err error) {
	remedy := "one that was not started"
	if err := option.CheckRequired("rollout/kube.NoteWatchErrors", "informer", informer, remedy); err != nil {
		return nil, err
	}
	w := &watchState{resource: resource, informer: informer}
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w.check, nil
}

func (w *watchState) begin() error {
	if err := w.informer.SetWatchErrorHandlerWithContext(w.failed); err != nil {
		return fmt.Errorf("looking after the watch of %s: %w", w.resource, err)
	}
	return nil
}

// failed keeps the error of a list or watch. The informer tries again by itself.
func (w *watchState) failed(ctx context.Context, r *cache.Reflector, err error) {
	cache.DefaultWatchErrorHandler(ctx, r, err)
	if away(err) {
		return
	}
	version := w.informer.LastSyncResourceVersion()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure, w.at, w.version = err, time.Now(), version
}

// away reports whether an error is that of an API server that gave no answer, or none yet: its watches come back with it, and whoever waits for it is not refused.
func away(err error) bool {
	var unanswered *url.Error
	return errors.As(err, &unanswered) || errors.Is(err, context.DeadlineExceeded) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// check is what [NoteWatchErrors] returns.
func (w *watchState) check() error {
	synced, version := w.informer.HasSynced(), w.informer.LastSyncResourceVersion()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != nil && version == w.version && time.Since(w.at) < quiet {
		return &watchError{Resource: w.resource, Synced: synced, Err: w.failure}
	}
	w.failure = nil
	if !synced {
		return &watchError{Resource: w.resource, Err: errNoAnswer}
	}
	return nil
}

var errNoAnswer = errors.New("not started, or the API server has not answered yet")

// A watchError says which watch lags, and why.
type watchError struct {
	// Resource is what is watched: "nodeshadows".
	Resource string
	// Synced is true where all objects were seen once, and what is known of them is now out of date.
	Synced bool
	// Err is the last error of the list or watch. For a missing right it names user, verb and resource.
	Err error
}

// Error names the resource and the cause.
func (e *watchError) Error() string {
	text := "watch of " + e.Resource + " has not seen all yet: "
	if e.Synced {
		text = "watch of " + e.Resource + " is out of date: "
	}
	if apierrors.IsNotFound(e.Err) { // of a kind, which a list names no object of
		text += "the API server does not serve this kind: see Install: "
	}
	return text + e.Err.Error()
}

// Unwrap returns the cause.
func (e *watchError) Unwrap() error { return e.Err }
