// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// hall is the far side of the ear's transport.
type hall struct {
	t      *testing.T
	ear    ear
	code   int // of the next answer; 0 is none
	speaks *io.PipeWriter
}

var errSilence = errors.New("connection refused")

// RoundTrip implements http.RoundTripper.
func (h *hall) RoundTrip(*http.Request) (*http.Response, error) {
	if h.code == 0 {
		return nil, errSilence
	}
	body, speaks := io.Pipe()
	h.speaks = speaks
	return &http.Response{StatusCode: h.code, Body: body}, nil
}

// asks sends a request that is answered with a code, and returns the body of the answer, if there is one.
func (h *hall) asks(path string, code int) io.ReadCloser {
	h.t.Helper()
	h.code = code
	request, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, "https://api.example.com"+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	response, err := h.ear.wrap(h).RoundTrip(request)
	if err != nil && !errors.Is(err, errSilence) {
		h.t.Fatal(err)
	}
	if response == nil {
		return nil
	}
	return response.Body
}

// watches begins a watch whose body is read, and returns what speaks in it.
func (h *hall) watches(path string) *io.PipeWriter {
	h.t.Helper()
	body := h.asks(path, http.StatusOK)
	go func() {
		_, _ = io.Copy(io.Discard, body)
		_ = body.Close()
	}()
	return h.speaks
}

// is checks how long ago the last word was.
func (h *hall) is(when string, want time.Duration) {
	h.t.Helper()
	synctest.Wait()
	if got := time.Since(h.ear.Heard()); got != want {
		h.t.Errorf("%s it was heard %s ago, want %s", when, got, want)
	}
}

func passes(d time.Duration) { <-time.After(d) }

const (
	onNodes  = "/api/v1/nodes?allowWatchBookmarks=true&watch=true"
	onPods   = "/api/v1/pods?watch=true"
	onLeases = "/apis/coordination.k8s.io/v1/leases?watch=true"
	lease    = "/apis/coordination.k8s.io/v1/namespaces/belay-system/leases/belay-rollout-default"
)

// What is heard are answers of an API server that works, and each word of a watch; not that there is none, nor that there is a refusal.
func TestWhatIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hall{t: t}
		if at := h.ear.Heard(); !at.IsZero() {
			t.Errorf("before the first word it was heard at %s", at)
		}
		h.asks(lease, http.StatusOK)
		h.is("after an answer", 0)
		passes(time.Minute)
		for _, code := range []int{0, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusGatewayTimeout} {
			h.asks(lease, code)
			h.is("after a refusal", time.Minute)
		}
		h.asks(lease, http.StatusConflict)
		h.is("after a conflict", 0)
		nodes := h.watches(onNodes)
		passes(time.Minute)
		h.is("while nothing comes", time.Minute)
		if _, err := nodes.Write([]byte("{}")); err != nil {
			t.Fatal(err)
		}
		h.is("after a word of a watch", 0)
		_ = nodes.CloseWithError(errSilence)
		passes(time.Second)
		h.is("after it broke off", time.Second)
	})
}

// A watch that is refused from the first request on is missed, also where lists are answered.
func TestWatchThatNeverBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hall{t: t}
		h.asks(onNodes, http.StatusForbidden)
		for range 3 {
			passes(time.Minute)
			h.asks("/api/v1/nodes", http.StatusOK)
			h.asks(onNodes, http.StatusForbidden)
		}
		h.is("while lists are answered", 3*time.Minute)
	})
}

// A watch that ends is nothing, if it begins again. One that does not is missed from its end on, whatever else is answered; where it broke off, from the last
// word on. What the page does not show may end.
func TestWatchThatIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hall{t: t}
		nodes, pods := h.watches(onNodes), h.watches(onPods)
		_ = h.watches(onLeases).Close()
		passes(time.Minute)
		h.asks(lease, http.StatusOK)
		h.is("without the watch of Leases", 0)
		_ = nodes.Close() // the API server has it end, after some minutes
		h.is("at the end of a watch", 0)
		passes(time.Second)
		h.asks(onNodes, http.StatusTooManyRequests)
		h.is("a second later", time.Second)
		nodes = h.watches(onNodes)
		h.is("after it began again", 0)
		passes(time.Minute)
		_ = pods.CloseWithError(errSilence) // the connection was dead
		h.is("after one broke off", time.Minute)
		passes(time.Minute)
		if _, err := nodes.Write([]byte("{}")); err != nil {
			t.Fatal(err)
		}
		h.asks(onPods, http.StatusForbidden)
		h.asks(lease, http.StatusOK)
		h.is("while others speak", 2*time.Minute)
		_ = h.watches(onPods).Close()
		_ = nodes.Close()
		h.is("after all began again", 0)
	})
}
