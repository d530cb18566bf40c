// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// calls are what agents ask of the API server.
type calls struct {
	all, lists, watches, throttled atomic.Int64
	// listed are the lists that were answered to their end: one that is cut before is asked for again.
	listed atomic.Int64
	// expired are the watches that the API server has ended because it has forgotten the events since then: 410.
	expired atomic.Int64

	mu sync.Mutex
	// unasked are lists, answered to their end, of agents that had listed before, and whose watch the API server has not ended with a 410 since: what came before.
	unasked []string

	// ahead is called with each request before it is sent, and failed with one that had no answer. Either may be nil. They are set before the first request.
	ahead, failed func(r *http.Request)
}

// over counts what goes through the transport of one agent, below the retries of client-go.
func (c *calls) over(next http.RoundTripper) http.RoundTripper {
	return &counting{calls: c, next: next, had: map[string]*had{}}
}

type counting struct {
	*calls
	next http.RoundTripper

	mu  sync.Mutex
	had map[string]*had // by path
}

// A had is what an agent has of a resource: a list, until the API server has forgotten where the watch after it was.
type had struct {
	mu     sync.Mutex
	listed bool
	story  []string // the last that was asked, and how it ended
}

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.all.Add(1)
	kind := whatIs(r)
	switch kind {
	case "list":
		c.lists.Add(1)
	case "watch":
		c.watches.Add(1)
	}
	if c.ahead != nil {
		c.ahead(r)
	}
	response, err := c.next.RoundTrip(r)
	switch {
	case err != nil && c.failed != nil:
		c.failed(r)
	case err == nil && response.StatusCode == http.StatusTooManyRequests:
		c.throttled.Add(1)
	}
	if kind != "" {
		c.read(r, response, err)
	}
	return response, err
}

// read follows what answers a list or a watch, while it is read.
func (c *counting) read(r *http.Request, response *http.Response, err error) {
	h := c.of(r.URL.Path)
	h.tell("a " + whatIs(r) + " from version " + r.URL.Query().Get("resourceVersion"))
	switch {
	case err != nil:
		h.tell(fmt.Sprintf("it had no answer: %v", err))
	case response.StatusCode == http.StatusGone:
		c.expired.Add(1)
		h.forgotten()
	case response.StatusCode != http.StatusOK:
		h.tell("it was answered " + response.Status)
	case r.URL.Query().Get("watch") != "":
		response.Body = &stream{ReadCloser: response.Body, began: time.Now(), last: time.Now(), had: h, marks: []*mark{
			{then: func() { c.expired.Add(1); h.forgotten() }, words: []string{`"type":"ERROR"`, `"code":410`}},
			{then: func() { c.list(h) }, words: []string{`"` + metav1.InitialEventsAnnotationKey + `":"true"`}},
		}}
	default:
		response.Body = &stream{ReadCloser: response.Body, end: func() { c.list(h) }}
	}
}

func (c *counting) of(path string) *had {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.had[path] == nil {
		c.had[path] = &had{}
	}
	return c.had[path]
}

// list counts one that was answered to its end.
func (c *calls) list(h *had) {
	c.listed.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listed {
		c.mu.Lock()
		c.unasked = append(c.unasked, strings.Join(h.story, ", "))
		c.mu.Unlock()
	}
	h.listed = true
}

// withoutCause are the lists that nothing had asked for, by what came before each.
func (c *calls) withoutCause() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unasked
}

func (h *had) forgotten() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listed = false
}

// tell keeps the last few things that happened, with their time.
func (h *had) tell(what string) {
	const kept = 8
	h.mu.Lock()
	defer h.mu.Unlock()
	h.story = append(h.story, time.Now().Format("15:04:05.000 ")+what)
	h.story = h.story[max(0, len(h.story)-kept):]
}

// A stream is an answer. It tells of each mark once, and of its end.
type stream struct {
	io.ReadCloser
	marks []*mark
	end   func() // of a list

	had         *had // of a watch
	began, last time.Time
	tail        []byte // the last that was read
}

// Read implements io.Reader.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	if n > 0 {
		s.tail, s.last = bytes.Clone(b[max(0, n-200):n]), time.Now()
	}
	for _, m := range s.marks {
		m.see(b[:n])
	}
	if errors.Is(err, io.EOF) && s.end != nil {
		s.end()
		s.end = nil
	}
	if err != nil && s.had != nil {
		s.had.tell(fmt.Sprintf("one ended after %s, %s after it had brought …%q: %v",
			time.Since(s.began).Round(time.Millisecond), time.Since(s.last).Round(time.Millisecond), s.tail, err))
	}
	return n, err
}

// A mark are words that come one after the other, with anything in between.
type mark struct {
	then  func()
	words []string // that have not come yet
	tail  []byte   // the last bytes, in which the next word may have begun
}

func (m *mark) see(b []byte) {
	if len(m.words) == 0 {
		return
	}
	m.tail = append(m.tail, b...)
	for len(m.words) > 0 {
		_, after, found := bytes.Cut(m.tail, []byte(m.words[0]))
		if !found {
			m.tail = bytes.Clone(m.tail[max(0, len(m.tail)-len(m.words[0])+1):])
			return
		}
		m.words, m.tail = m.words[1:], after
	}
	m.then()
}

// whatIs tells a list and a watch from other requests. A watch that begins with everything that there is costs what a list does, and is one here.
func whatIs(r *http.Request) string {
	query := r.URL.Query()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Method != http.MethodGet:
		return ""
	case query.Get("watch") != "" && query.Get("sendInitialEvents") != "true":
		return "watch"
	case query.Get("watch") != "", query.Has("limit"), collection(parts):
		return "list"
	}
	return ""
}

// collection reports whether the parts of a path name all objects of a resource: without a namespace where it has none, as the agents' resources.
func collection(parts []string) bool {
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	return len(parts) == 1
}
