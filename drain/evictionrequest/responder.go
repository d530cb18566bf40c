// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/evictionapi"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/watch"
)

// A Responder is the default responder: it evicts a pod through its subresource pods/eviction while it is Active.
// Make it with [NewResponder].
type Responder struct {
	client    dynamic.Interface
	pods      drain.Cache
	evict     drain.Client
	now       func() time.Time
	evictions cache.SharedIndexInformer

	mu       sync.Mutex
	attempts map[drain.PodRef]attempt
}

// NewResponder returns a Responder. It makes no request. An error is an OptionError that names every option that is
// missing.
func NewResponder(o Options) (*Responder, error) {
	check := option.For("drain/evictionrequest.NewResponder", nil)
	checkOptions(check, o)
	check.Require("Options.Evict", o.Evict, "see drain/kube.NewClient")
	if err := check.Err(); err != nil {
		return nil, err
	}
	r := &Responder{
		client: o.Client, pods: o.Pods, evict: o.Evict, now: clockOr(o.Now), attempts: map[drain.PodRef]attempt{},
	}
	labelled := func(list *metav1.ListOptions) { list.LabelSelector = evictionapi.ImperativeEvictor }
	r.evictions = watch.NewInformer(
		o.Client, evictionapi.EvictionsResource(), o.Namespace, byTarget(evictionTarget), labelled)
	return r, nil
}

// Run watches the Evictions that are labelled with the name of the default responder, and calls [Responder.Reconcile]
// for each pod of which something has changed, until ctx ends or a watch cannot be set up. It may be called once.
func (r *Responder) Run(ctx context.Context) error {
	if r == nil || r.client == nil {
		return option.NotMade("drain/evictionrequest.Responder.Run", "drain/evictionrequest.NewResponder")
	}
	q := newLoop(r.Reconcile)
	defer q.queue.ShutDown()
	if err := q.followInformer(r.evictions, evictionTarget); err != nil {
		return fmt.Errorf("evictionrequest: %w", err)
	}
	q.runWorkers(ctx, r.pods, r.evictions)
	return nil
}

// Reconcile makes one bounded pass over the Eviction of a pod: it asks for an eviction if it is Active and its back-off
// is over. It writes a heartbeat before it asks, on the state that it has seen: a responder that was canceled meanwhile
// asks for nothing. It returns when to call it again without a trigger: zero is never. [Responder.Run] must be running.
func (r *Responder) Reconcile(ctx context.Context, target drain.PodRef) (time.Duration, error) {
	if r == nil || r.client == nil {
		return 0, option.NotMade("drain/evictionrequest.Responder.Reconcile", "drain/evictionrequest.NewResponder")
	}
	if err := r.pods.Check(); err != nil {
		return 0, fmt.Errorf("evictionrequest: responder of pod %s: %w", target.Key(), err)
	}
	evictions, err := listOf(r.evictions, target, evictionapi.DecodeEviction)
	if err != nil {
		return 0, fmt.Errorf("evictionrequest: responder of pod %s: %w", target.Key(), err)
	}
	i := slices.IndexFunc(evictions, func(e *evictionapi.Eviction) bool { return !isFinal(e.Status.Conditions) })
	if i < 0 {
		r.setAttempt(target, attempt{})
		return 0, nil
	}
	after, err := r.reconcileOne(ctx, target, evictions[i])
	if apierrors.IsConflict(err) {
		return lateRequeue, nil // its state has changed
	}
	if err != nil {
		return 0, fmt.Errorf("evictionrequest: responder of Eviction %s/%s: %w", target.Namespace, evictions[i].Name, err)
	}
	return after, nil
}

func (r *Responder) reconcileOne(
	ctx context.Context, target drain.PodRef, e *evictionapi.Eviction,
) (time.Duration, error) {
	a := r.attemptOf(target)
	decided := decideResponse(e, r.podOf(target), a, r.now())
	switch decided.step {
	case stepComplete:
		return 0, r.reportStatus(ctx, e, written{message: decided.message, done: true})
	case stepWait:
		return decided.after, nil
	case stepEvict:
		return r.evictOnce(ctx, target, e, a)
	default:
		r.setAttempt(target, attempt{})
		return 0, nil
	}
}

// evictOnce asks for one eviction, and writes before that it will and after that what the answer was.
func (r *Responder) evictOnce(
	ctx context.Context, target drain.PodRef, e *evictionapi.Eviction, a attempt,
) (time.Duration, error) {
	asking := fmt.Sprintf("Asking for the eviction of the pod, attempt %d.", a.failed+1)
	if err := r.reportStatus(ctx, e, written{message: asking, beat: true}); err != nil {
		return 0, err
	}
	a.last = r.now()
	answer := drain.Classify(r.evict.Evict(ctx, target, nil))
	message, done := "The API server accepted the eviction.", true
	switch answer.Verdict {
	case "Accepted":
	case "Gone", "Replaced":
		message = "The pod is gone."
	default:
		a.failed++
		message, done = describeFailure(a.failed, string(answer.Verdict), answer.Message), false
	}
	r.setAttempt(target, a)
	e.ResourceVersion = "" // the write before has changed it; the API server refuses this one unless still Active
	if err := r.reportStatus(ctx, e, written{message: message, done: done}); err != nil {
		return 0, err
	}
	return firstBackoff, nil
}

// What a responder writes: a message, a heartbeat, and the end of its work.
type written struct {
	message    string
	beat, done bool
}

// reportStatus writes this responder's own status. Where the Eviction has a
// resourceVersion, it must still have it.
func (r *Responder) reportStatus(ctx context.Context, e *evictionapi.Eviction, w written) error {
	now := r.now().Truncate(time.Second)
	status := newTurn(e.Status).statuses[evictionapi.ImperativeEvictor]
	if status.StartTime != nil && now.Before(status.StartTime.Time) {
		now = status.StartTime.Time // the clock of another machine
	}
	own := map[string]any{"name": evictionapi.ImperativeEvictor, "message": w.message}
	if w.beat {
		own["heartbeatTime"] = metav1.NewTime(now)
	}
	if w.done {
		own["completionTime"] = metav1.NewTime(now)
	}
	return patchObject(ctx, r.client, evictionapi.EvictionsResource(), e.ObjectMeta, nil, map[string]any{
		"responders": []any{own},
	})
}

// podOf returns the pod from the cache, or nil if it is not there under its UID.
func (r *Responder) podOf(target drain.PodRef) *corev1.Pod {
	pod := r.pods.Pod(target.Namespace, target.Name)
	if pod == nil || pod.UID != target.UID {
		return nil
	}
	return pod
}

func (r *Responder) attemptOf(target drain.PodRef) attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.attempts[target]
}

func (r *Responder) setAttempt(target drain.PodRef, a attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a == (attempt{}) {
		delete(r.attempts, target)
		return
	}
	r.attempts[target] = a
}
