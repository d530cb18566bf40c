// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// patience is how long a call of a faulted node lasts at most, and how long a watch that gets no answer at all hangs.
const patience = 400 * time.Millisecond

// A way is one in which a call goes wrong. carry has the request and the transport that would carry it.
type way struct {
	name string
	carrier
}

type carrier interface {
	carry(next http.RoundTripper, req *http.Request) (*http.Response, error)
}

type carrying func(next http.RoundTripper, req *http.Request) (*http.Response, error)

func (f carrying) carry(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	return f(next, req)
}

// ways are all of them. A time-out ends with the caller's patience; after the commit, the server has done what it was asked to, and only the
// answer is lost. A dropped connection ends in the middle of the answer; that of a watch after its first piece.
func ways() []way {
	return []way{
		{"409", answer{http.StatusConflict, "Conflict", ""}},
		{"429", answer{http.StatusTooManyRequests, "TooManyRequests", "1"}},
		{"500", answer{http.StatusInternalServerError, "InternalError", ""}},
		{"503", answer{http.StatusServiceUnavailable, "ServiceUnavailable", ""}},
		{"504", answer{http.StatusGatewayTimeout, "Timeout", ""}},
		{"time-out before the commit", carrying(func(_ http.RoundTripper, req *http.Request) (*http.Response, error) { return nil, silence(req) })},
		{"time-out after the commit", carrying(committed)},
		{"dropped", carrying(dropped)},
	}
}

// An answer is of a server that refuses with a code, and has done nothing.
type answer struct {
	code               int
	reason, retryAfter string
}

func (a answer) carry(_ http.RoundTripper, req *http.Request) (*http.Response, error) {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"a fault of the test","reason":%q,"code":%d}`, a.reason, a.code)
	resp := reply(req, a.code, []byte(body))
	if a.retryAfter != "" {
		resp.Header.Set("Retry-After", a.retryAfter)
	}
	return resp, nil
}

func reply(req *http.Request, code int, body []byte) *http.Response {
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": []string{"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// silence waits until the caller gives up.
func silence(req *http.Request) error {
	select {
	case <-req.Context().Done():
		return req.Context().Err()
	case <-time.After(2 * patience): // a call without a deadline: its connection ends
		return errors.New("connection timed out")
	}
}

func committed(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), 10*patience)
	defer cancel()
	resp, err := next.RoundTrip(req.Clone(ctx))
	if err != nil {
		return nil, err
	}
	if !strings.Contains(req.URL.RawQuery, "watch=") {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	return nil, errors.Join(silence(req), err, resp.Body.Close())
}

func dropped(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := next.RoundTrip(req)
	if err == nil {
		resp.Body = &cut{ReadCloser: resp.Body}
	}
	return resp, err
}

// cut is an answer that breaks off after its first bytes.
type cut struct {
	io.ReadCloser
	read bool
}

// Read gives some bytes, once.
func (c *cut) Read(p []byte) (int, error) {
	if c.read || len(p) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	c.read = true
	return c.ReadCloser.Read(p[:min(len(p), 200)])
}

// A wire carries the calls of one node, has a name for each, and lets one of them go wrong.
type wire struct {
	next http.RoundTripper
	node string
	at   string // the call that goes wrong, in this way
	way  way
	// believes is a client that takes a time-out of a write for success; quits one that gives up a write after a conflict. Both are wrong.
	believes, quits bool

	mu    sync.Mutex
	seen  map[string]int
	calls []string
	hit   bool
	given map[string]bool // up, by the client that quits
}

// nameOf is the name of a call but for its number: what it does to what, whatever the node's name.
func (w *wire) nameOf(req *http.Request) string {
	verb := req.Method
	if strings.Contains(req.URL.RawQuery, "watch=") {
		verb = "WATCH"
	}
	return verb + " " + strings.ReplaceAll(req.URL.Path, w.node, "NODE")
}

// take says whether this call goes wrong, and whether it is not made at all.
func (w *wire) take(name string) (faulted, given bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[name]++
	call := fmt.Sprintf("%s #%d", name, w.seen[name])
	w.calls = append(w.calls, call)
	faulted = call == w.at && !w.hit
	w.hit = w.hit || faulted
	return faulted, w.given[name]
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	name := w.nameOf(req)
	faulted, given := w.take(name)
	if given {
		return answer{http.StatusConflict, "Conflict", ""}.carry(nil, req)
	}
	if !faulted {
		return w.next.RoundTrip(req)
	}
	var sent []byte
	if w.believes && req.Method == http.MethodPatch {
		var err error
		if sent, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	resp, err := w.way.carry(w.next, req)
	switch {
	case sent != nil && errors.Is(err, context.DeadlineExceeded):
		return reply(req, http.StatusOK, sent), nil
	case w.quits && err == nil && resp.StatusCode == http.StatusConflict:
		w.mu.Lock()
		w.given[name] = true
		w.mu.Unlock()
	}
	return resp, err
}

func (w *wire) record() (calls []string, hit bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.calls...), w.hit
}
