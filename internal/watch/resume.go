// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/backoff"
)

// Resume returns a lister and watcher, for a reflector or an informer, whose watches resume by themselves. The client is what lw
// asks. After a watch without an event is a pause, of up to most.
func Resume(lw *cache.ListWatch, client any, most time.Duration) cache.ListerWatcher {
	resuming := *lw
	resuming.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return begin(ctx, o, lw.WatchFuncWithContext, pauses(most))
	}
	return withSemantics{ListWatch: &resuming, client: client}
}

// withSemantics tells reflectors whether the client can stream a list, as cache.ToListWatcherWithWatchListSemantics of client-go
// 0.35 does. Fake clients cannot.
type withSemantics struct {
	*cache.ListWatch
	client any
}

// IsWatchListSemanticsUnSupported is what a reflector asks, under the name that it asks for.
func (w withSemantics) IsWatchListSemanticsUnSupported() bool {
	c, ok := w.client.(interface{ IsWatchListSemanticsUnSupported() bool })
	return ok && c.IsWatchListSemanticsUnSupported()
}

// MaxPause is the usual longest pause.
const MaxPause = 30 * time.Second

// pauses double from a second to most, with as much again of jitter so that the nodes of a fleet come back spread out.
func pauses(most time.Duration) *backoff.Backoff {
	return &backoff.Backoff{First: time.Second, Most: most}
}

// pause waits for the next of some pauses, or for the end of ctx.
func pause(ctx context.Context, of *backoff.Backoff) {
	backoff.Sleep(ctx, backoff.Jitter(of.Next(), 1, 2, nil))
}

// A resumed is a watch that goes on by itself from where it was, until it is stopped or the API server ends it with an error: that it has forgotten where the
// watch was (410), for one. A reflector lists after an error, and it would after every failure but a refused connection and a 429: so would each node of a
// fleet behind a middlebox that cuts connections, or a load balancer that answers for an API server that is away. Nor does a reflector look at its
// context while it waits before its first list.
type resumed struct {
	begin   cache.WatchFuncWithContext
	options metav1.ListOptions // of the next watch
	delay   *backoff.Backoff
	events  chan watch.Event
	stop    context.CancelFunc
}

// begin returns a watch as soon as the API server has answered the first of its requests with one.
func begin(
	ctx context.Context, o metav1.ListOptions, one cache.WatchFuncWithContext, delay *backoff.Backoff,
) (watch.Interface, error) {
	ctx, stop := context.WithCancel(ctx)
	r := &resumed{begin: one, options: o, delay: delay, events: make(chan watch.Event), stop: stop}
	w, err := r.next(ctx)
	if err != nil {
		stop()
		return nil, err
	}
	go r.forward(ctx, w)
	return r, nil
}

// Stop implements watch.Interface.
func (r *resumed) Stop() { r.stop() }

// ResultChan implements watch.Interface.
func (r *resumed) ResultChan() <-chan watch.Event { return r.events }

// next begins a watch, again and again while what fails says nothing of it.
func (r *resumed) next(ctx context.Context) (watch.Interface, error) {
	for {
		w, err := r.begin(ctx, r.options)
		if err == nil || !passes(err) || ctx.Err() != nil {
			return w, err
		}
		klog.FromContext(ctx).Info("The watch could not begin, and is tried again from where it was", "err", err)
		pause(ctx, r.delay)
	}
}

// passes reports whether an error says nothing of what was asked for: there was no answer, or one of a server or gateway that is too busy or away.
func passes(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return true
	}
	switch answer.Status().Code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
	}
	return false
}

// forward hands on the events of one watch after the other.
func (r *resumed) forward(ctx context.Context, w watch.Interface) {
	defer close(r.events)
	defer r.stop()
	for r.relay(ctx, w) {
		var err error
		if w, err = r.next(ctx); err != nil {
			var answer apierrors.APIStatus
			if errors.As(err, &answer) {
				status := answer.Status()
				r.send(ctx, watch.Event{Type: watch.Error, Object: &status})
			}
			return
		}
	}
}

// short is how long a watch lasts at least that brings nothing and is followed by another one without a pause.
const short = time.Second

// relay hands on the events of one watch, and reports whether another one is to go on after it: not if it was cut within the list that it began with.
func (r *resumed) relay(ctx context.Context, w watch.Interface) bool {
	defer context.AfterFunc(ctx, w.Stop)()
	defer w.Stop()
	began, came := time.Now(), false
	lasted := func() bool { return came || time.Since(began) >= short }
	for e := range w.ResultChan() {
		if brokenOff(e) && lasted() {
			break
		}
		place := r.after(e) // whoever takes the event may change its object
		if !r.send(ctx, e) || e.Type == watch.Error {
			return false
		}
		came, r.options = true, place
	}
	if came && r.options.SendInitialEvents != nil {
		return false
	}
	if lasted() {
		r.delay.Reset()
	} else {
		pause(ctx, r.delay)
	}
	return ctx.Err() == nil
}

// after are the options of a watch that goes on after an event, which may be the end of the list that the watch has begun with.
func (r *resumed) after(e watch.Event) metav1.ListOptions {
	next := r.options
	object, err := meta.Accessor(e.Object)
	if err != nil {
		return next
	}
	next.ResourceVersion = object.GetResourceVersion()
	if e.Type == watch.Bookmark && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		next.SendInitialEvents, next.ResourceVersionMatch = nil, ""
	}
	return next
}

// undecoded is the cause that client-go gives an event of its own, when what it read of a watch is no event, or could not be read for some failures of the
// connection: Request.newStreamWatcher.
const undecoded metav1.CauseType = "ClientWatchDecoding"

// brokenOff reports whether an event is of client-go, not of the API server. If a watch begins with one, it is what the API server sends.
func brokenOff(e watch.Event) bool {
	return e.Type == watch.Error && apierrors.HasStatusCause(apierrors.FromObject(e.Object), undecoded)
}

// send reports whether somebody took the event.
func (r *resumed) send(ctx context.Context, e watch.Event) bool {
	select {
	case r.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}
