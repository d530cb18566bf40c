// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// calls are what agents ask of the API server.
type calls struct {
	all, lists, watches, throttled atomic.Int64
	// listed are the lists that were answered to their end: one that is cut before is asked for again.
	listed atomic.Int64
	// expired are the watches that the API server has ended because it has forgotten the events since then: 410.
	expired atomic.Int64

	// ahead is called with each request before it is sent, and failed with one that had no answer. Either may be nil. They are set before the first request.
	ahead, failed func(r *http.Request)
}

// over counts what goes through a transport, below the retries of client-go.
func (c *calls) over(next http.RoundTripper) http.RoundTripper { return counting{c, next} }

type counting struct {
	*calls
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.all.Add(1)
	switch whatIs(r) {
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
	case err == nil && response.StatusCode == http.StatusOK:
		response.Body = c.read(r, response.Body)
	}
	if err == nil && response.StatusCode == http.StatusTooManyRequests {
		c.throttled.Add(1)
	}
	return response, err
}

// read counts what an answer says while it is read.
func (c *calls) read(r *http.Request, body io.ReadCloser) io.ReadCloser {
	switch {
	case r.URL.Query().Get("watch") != "":
		return &stream{ReadCloser: body, marks: []*mark{
			{count: &c.expired, words: []string{`"type":"ERROR"`, `"code":410`}},
			{count: &c.listed, words: []string{`"` + metav1.InitialEventsAnnotationKey + `":"true"`}},
		}}
	case whatIs(r) == "list":
		return &stream{ReadCloser: body, end: &c.listed}
	}
	return body
}

// A stream is an answer. It counts each mark once, and its end.
type stream struct {
	io.ReadCloser
	marks []*mark
	end   *atomic.Int64
}

// Read implements io.Reader.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	for _, m := range s.marks {
		m.see(b[:n])
	}
	if errors.Is(err, io.EOF) && s.end != nil {
		s.end.Add(1)
		s.end = nil
	}
	return n, err
}

// A mark are words that come one after the other, with anything in between.
type mark struct {
	count *atomic.Int64
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
	m.count.Add(1)
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
