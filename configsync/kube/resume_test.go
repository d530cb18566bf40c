// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync/kube"
)

// A thread is the way to an API server, as the test says. It notes what was asked: "list", or "watch 7" from version 7 on.
type thread struct {
	mu      sync.Mutex
	asked   []string
	first   carrying // of the first watch; the others live
	initial carrying // of all that there is, by list or watch; nil: nothing, by list alone
	streams bool     // a list is a watch, of which initial answers the first
}

// RoundTrip implements http.RoundTripper.
func (w *thread) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.initial != nil && !w.streams:
		return w.initial(nil, req)
	case w.streams && query.Get("sendInitialEvents") != "":
		w.asked = append(w.asked, "stream")
		if len(w.asked) == 1 {
			return w.initial(nil, req)
		}
		return streams(req, listed, 0, nil)
	case query.Get("sendInitialEvents") != "":
		return reply(req, http.StatusUnprocessableEntity, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)), nil
	case query.Get("watch") == "":
		w.asked = append(w.asked, "list")
		return reply(req, http.StatusOK, []byte(`{"apiVersion":"belay.dev/v1alpha1","kind":"NodeConfigList","metadata":{"resourceVersion":"7"},"items":[]}`)), nil
	}
	w.asked = append(w.asked, "watch "+query.Get("resourceVersion"))
	if w.first != nil && slices.IndexFunc(w.asked, func(s string) bool { return s != "list" }) == len(w.asked)-1 {
		return w.first(nil, req)
	}
	return streams(req, "", 0, nil)
}

func (w *thread) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.asked, ", ")
}

func (w *thread) config() *rest.Config {
	return &rest.Config{Host: "http://wire.test", QPS: -1, Transport: w}
}

// streams is the answer to a watch that brings what is given, and ends then after a time; without one it lives until it is stopped.
func streams(req *http.Request, what string, after time.Duration, end error) (*http.Response, error) {
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, what)
		over := time.After(after)
		if after == 0 {
			over = nil
		}
		select {
		case <-req.Context().Done():
			end = req.Context().Err()
		case <-over:
		}
		_ = w.CloseWithError(end)
	}()
	resp := reply(req, http.StatusOK, nil)
	resp.Body, resp.ContentLength = r, -1
	return resp, nil
}

func fails(err error) carrying {
	return func(http.RoundTripper, *http.Request) (*http.Response, error) { return nil, err }
}

func refuses(code int, body string) carrying {
	return func(_ http.RoundTripper, req *http.Request) (*http.Response, error) {
		return reply(req, code, []byte(body)), nil
	}
}

// brings answers a watch with what is given, and ends it after a time.
func brings(what string, after time.Duration, end error) carrying {
	return func(_ http.RoundTripper, req *http.Request) (*http.Response, error) {
		return streams(req, what, after, end)
	}
}

// listed ends a list that is a watch, and bookmark comes later.
const listed = `{"type":"BOOKMARK","object":{"apiVersion":"belay.dev/v1alpha1","kind":"NodeConfig","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`

const bookmark = `{"type":"BOOKMARK","object":{"apiVersion":"belay.dev/v1alpha1","kind":"NodeConfig","metadata":{"resourceVersion":"9"}}}`

var errLost = errors.New("http2: client connection lost")

func status(code int, rest string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d%s}`, code, rest)
}

// TestOnlyTheAPIServerHasAWatchListAgain covers R-CS-37: a fleet behind what cuts connections does not list; each watch goes on from the version that it had.
func TestOnlyTheAPIServerHasAWatchListAgain(t *testing.T) {
	const goesOn, anew = "list, watch 7, watch 7", "list, watch 7, list, watch 7"
	for name, c := range map[string]struct {
		first carrying
		want  string
	}{
		"refused":                       {fails(syscall.ECONNREFUSED), goesOn},
		"cut while it was written":      {fails(fmt.Errorf("write: %w", syscall.EPIPE)), goesOn},
		"cut before the answer":         {fails(io.EOF), goesOn},
		"reset":                         {fails(fmt.Errorf("read: %w", syscall.ECONNRESET)), goesOn},
		"lost":                          {fails(errLost), goesOn},
		"no such host":                  {fails(errors.New("dial tcp: lookup wire.test: no such host")), goesOn},
		"ended as soon as it began":     {refuses(http.StatusOK, ""), goesOn},
		"502 of a gateway":              {refuses(http.StatusBadGateway, "<html>bad gateway"), goesOn},
		"503 of a gateway":              {refuses(http.StatusServiceUnavailable, "<html>away"), goesOn},
		"504 of a gateway":              {refuses(http.StatusGatewayTimeout, "<html>late"), goesOn},
		"429":                           {refuses(http.StatusTooManyRequests, status(429, `,"reason":"TooManyRequests"`)), goesOn},
		"lost after an event":           {brings(bookmark, time.Minute, errLost), "list, watch 7, watch 9"},
		"lost before any":               {brings("", time.Minute, errLost), goesOn},
		"no events":                     {refuses(http.StatusOK, "never\n"), anew},
		"an event and its end":          {refuses(http.StatusOK, bookmark), "list, watch 7, watch 9"},
		"forgotten":                     {refuses(http.StatusOK, `{"type":"ERROR","object":`+status(410, `,"reason":"Expired"`)+`}`), anew},
		"forgotten, said by the answer": {refuses(http.StatusGone, status(410, `,"reason":"Expired"`)), anew},
		"from the future":               {refuses(http.StatusGatewayTimeout, status(504, `,"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}`)), anew},
		"forbidden":                     {refuses(http.StatusForbidden, status(403, `,"reason":"Forbidden"`)), anew},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &thread{first: c.first}
				stop := watched(t, w)
				<-time.After(5 * time.Minute)
				if got := w.all(); got != c.want {
					t.Errorf("asked %s, want %s", got, c.want)
				}
				stop()
			})
		})
	}
}

// TestAListThatIsAWatchGoesOn covers R-CS-37: the watch that a list has become is not begun anew with another one; a list that was cut is.
func TestAListThatIsAWatchGoesOn(t *testing.T) {
	const added = `{"type":"ADDED","object":{"apiVersion":"belay.dev/v1alpha1","kind":"NodeConfig","metadata":{"name":"n","uid":"u","resourceVersion":"5"}}}` + "\n"
	for name, c := range map[string]struct {
		first carrying
		want  string
	}{
		"ended as soon as it was a watch": {brings(added+listed, time.Millisecond, io.EOF), "stream, watch 7"},
		"ended later":                     {brings(added+listed, time.Minute, io.EOF), "stream, watch 7"},
		"lost":                            {brings(added+listed, time.Minute, errLost), "stream, watch 7"},
		"lost after a bookmark":           {brings(listed+bookmark, time.Minute, errLost), "stream, watch 9"},
		"cut before it began":             {fails(io.EOF), "stream, stream"},
		"ended before it began":           {brings("", time.Millisecond, io.EOF), "stream, stream"},
		"cut in the middle":               {brings(added, time.Minute, io.EOF), "stream, stream"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &thread{streams: true, initial: c.first}
				stop := watched(t, w)
				<-time.After(5 * time.Minute)
				if got := w.all(); got != c.want {
					t.Errorf("asked %s, want %s", got, c.want)
				}
				stop()
			})
		})
	}
}

// watched runs a watch over the thread. What it returns stops that, and wants it to end at once.
func watched(t *testing.T, w *thread) (stop func()) {
	t.Helper()
	source, err := kube.NewNodeConfigSource(clientFor(t, w.config()), "n", kube.Options{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Watch(ctx, func() {}) }()
	return func() {
		t.Helper()
		at := time.Now()
		cancel()
		must(t, <-ended)
		if took := time.Since(at); took > time.Second {
			t.Errorf("the watch ended %s after its context, want at once", took)
		}
	}
}

// TestAWatchWithoutAServerEndsAtOnce: whoever stops an agent does not wait for the pause of a watch that never had an answer.
func TestAWatchWithoutAServerEndsAtOnce(t *testing.T) {
	for name, way := range map[string]carrying{"refused": fails(syscall.ECONNREFUSED), "429": refuses(http.StatusTooManyRequests, status(429, "")), "lost": fails(errLost)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				stop := watched(t, &thread{initial: func(_ http.RoundTripper, req *http.Request) (*http.Response, error) { n++; return way(nil, req) }})
				<-time.After(10*time.Minute + 500*time.Millisecond)
				stop()
				if n < 5 || n > 30 {
					t.Errorf("%d attempts in ten minutes, want pauses that grow to a minute or two", n)
				}
			})
		})
	}
}
