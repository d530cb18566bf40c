// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

// A reflector lists again after every failure of a watch but two: a refused connection and a 429. Behind a middlebox that cuts connections, or a load balancer
// that answers for an API server that is away, each node of a fleet would. What is here keeps failures of the way to the API server from the reflector, so that
// only an answer of the API server itself has it list: that it has forgotten where the watch was (410), for one.

// resuming begins a watch, again and again until the API server answers, and waits in between as c backs off. It returns at once when ctx ends, as a
// reflector that waits by itself before its first list does not.
func (c caller) resuming(ctx context.Context, o metav1.ListOptions, begin func(context.Context, metav1.ListOptions) (watch.Interface, error)) (watch.Interface, error) {
	delay := c.backoff().DelayFunc()
	for {
		began := time.Now()
		w, err := begin(ctx, o)
		if err == nil && o.SendInitialEvents == nil {
			return goingOn(w, began), nil
		}
		if err == nil || !passes(err) || ctx.Err() != nil {
			return w, err
		}
		klog.FromContext(ctx).Info("The watch could not begin, and is tried again from where it was", "err", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(delay()):
		}
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

// short is what a reflector calls a very short watch, if nothing came: it lists after one.
const short = time.Second

// A goes is a watch that goes on: one that ends too early, or in the middle of an answer, says that there were too many requests, after which a reflector
// waits and watches from where it was.
type goes struct {
	watch.Interface
	events  chan watch.Event
	stopped chan struct{}
	stop    func()
}

func goingOn(w watch.Interface, began time.Time) watch.Interface {
	g := &goes{Interface: w, events: make(chan watch.Event), stopped: make(chan struct{})}
	g.stop = sync.OnceFunc(func() { close(g.stopped) })
	go g.forward(began)
	return g
}

// Stop implements watch.Interface.
func (g *goes) Stop() {
	g.stop()
	g.Interface.Stop()
}

// ResultChan implements watch.Interface.
func (g *goes) ResultChan() <-chan watch.Event { return g.events }

func (g *goes) forward(began time.Time) {
	defer close(g.events)
	came := false
	for e := range g.Interface.ResultChan() {
		if brokenOff(e) && (came || time.Since(began) >= short) {
			g.again("the watch broke off")
			return
		}
		came = true
		if !g.send(e) {
			return
		}
	}
	if !came && time.Since(began) < short {
		g.again("the watch ended as soon as it had begun")
	}
}

// undecoded is the cause that client-go gives an event of its own, when what it read of a watch is no event, or could not be read for some failures of the
// connection: Request.newStreamWatcher.
const undecoded metav1.CauseType = "ClientWatchDecoding"

// brokenOff reports whether an event is of client-go, not of the API server. If the next watch from there begins with one too, it is what the API server
// sends, and goes to the reflector.
func brokenOff(e watch.Event) bool {
	return e.Type == watch.Error && apierrors.HasStatusCause(apierrors.FromObject(e.Object), undecoded)
}

// again has the reflector wait and go on from where the watch was.
func (g *goes) again(why string) {
	status := apierrors.NewTooManyRequests(why, 0).Status()
	g.send(watch.Event{Type: watch.Error, Object: &status})
}

// send reports whether somebody took the event.
func (g *goes) send(e watch.Event) bool {
	select {
	case g.events <- e:
		return true
	case <-g.stopped:
		return false
	}
}
