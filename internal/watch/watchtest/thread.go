// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package watchtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// An Answer is what comes of a request.
type Answer func(*http.Request) (*http.Response, error)

// A Thread is the way to an API server that has nothing to list. It notes what was asked: "list", "stream" for a list that is a watch, or "watch 7" from
// version 7 on. The zero value is of NodeConfigs, and has no failures.
type Thread struct {
	// Version and Kind are those of the objects.
	Version, Kind string
	// First are the answers to the first watches; the others live.
	First []Answer
	// Initial answers the first list where lists are Streams, and else each of them, if it is not nil.
	Initial Answer
	// Streams has lists be watches.
	Streams bool

	mu      sync.Mutex
	asked   []string
	watches int
}

// RoundTrip implements http.RoundTripper.
func (w *Thread) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.Initial != nil && !w.Streams:
		return w.Initial(req)
	case w.Streams && query.Get("sendInitialEvents") != "":
		return w.stream(req)
	case query.Get("sendInitialEvents") != "":
		return reply(req, http.StatusUnprocessableEntity, Status(http.StatusUnprocessableEntity, `,"reason":"Invalid"`)), nil
	case query.Get("watch") == "":
		w.asked = append(w.asked, "list")
		version, kind := w.of()
		return reply(req, http.StatusOK, fmt.Sprintf(`{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"7"},"items":[]}`, version, kind)), nil
	}
	w.asked = append(w.asked, "watch "+query.Get("resourceVersion"))
	w.watches++
	if w.watches <= len(w.First) {
		return w.First[w.watches-1](req)
	}
	return stream(req, "", 0, nil)
}

// stream answers a list that is a watch.
func (w *Thread) stream(req *http.Request) (*http.Response, error) {
	w.asked = append(w.asked, "stream")
	if len(w.asked) == 1 && w.Initial != nil {
		return w.Initial(req)
	}
	return stream(req, w.Listed(), 0, nil)
}

func (w *Thread) of() (version, kind string) {
	if w.Kind == "" {
		return "belay.dev/v1alpha1", "NodeConfig"
	}
	return w.Version, w.Kind
}

// Listed is the event that ends a list that is a watch, at version 7.
func (w *Thread) Listed() string {
	return w.event("BOOKMARK", `{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}`)
}

// Bookmark is one of version 9.
func (w *Thread) Bookmark() string { return w.event("BOOKMARK", `{"resourceVersion":"9"}`) }

// Added is an object of version 5, by the name n.
func (w *Thread) Added() string {
	return w.event("ADDED", `{"name":"n","uid":"u","resourceVersion":"5"}`)
}

func (w *Thread) event(what, metadata string) string {
	version, kind := w.of()
	return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":%q,"kind":%q,"metadata":%s}}`+"\n", what, version, kind, metadata)
}

// Asked is what was asked so far.
func (w *Thread) Asked() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.asked, ", ")
}

// Config is a connection over the thread.
func (w *Thread) Config() *rest.Config {
	return &rest.Config{Host: "http://wire.test", QPS: -1, Transport: w}
}

// Status is a failure as the API server tells it; the rest begins with a comma.
func Status(code int, rest string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d%s}`, code, rest)
}

// Forgotten is the event with which the API server says that it has forgotten where a watch was.
func Forgotten() string {
	return `{"type":"ERROR","object":` + Status(http.StatusGone, `,"reason":"Expired"`) + "}\n"
}

// Fails is no answer.
func Fails(err error) Answer {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// Says is an answer with a code, which ends at once.
func Says(code int, body string) Answer {
	return func(req *http.Request) (*http.Response, error) { return reply(req, code, body), nil }
}

// Brings answers a watch with what is given, and ends it after a time.
func Brings(what string, after time.Duration, end error) Answer {
	return func(req *http.Request) (*http.Response, error) { return stream(req, what, after, end) }
}

// stream is the answer to a watch that brings what is given, and ends then after a time; without one it lives until it is stopped.
func stream(req *http.Request, what string, after time.Duration, end error) (*http.Response, error) {
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
	resp := reply(req, http.StatusOK, "")
	resp.Body, resp.ContentLength = r, -1
	return resp, nil
}

func reply(req *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader([]byte(body))),
		ContentLength: int64(len(body)), Request: req,
	}
}

// Runs runs a watch in the background. What it returns stops that, and wants it to end at once.
func Runs(t testing.TB, watch func(context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		watch(ctx)
	}()
	return func() {
		t.Helper()
		at := time.Now()
		cancel()
		<-ended
		if took := time.Since(at); took > time.Second {
			t.Errorf("the watch ended %s after its context, want at once", took)
		}
	}
}
