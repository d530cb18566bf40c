// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// calls are what agents ask of the API server.
type calls struct {
	all, lists, watches, throttled atomic.Int64
	// listed are the lists that were answered.
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
	case err == nil && whatIs(r) == "list" && response.StatusCode == http.StatusOK:
		c.listed.Add(1)
	case err == nil && whatIs(r) == "watch":
		response.Body = &stream{ReadCloser: response.Body, expired: &c.expired}
	}
	if err == nil && response.StatusCode == http.StatusTooManyRequests {
		c.throttled.Add(1)
	}
	return response, err
}

// A stream is the answer to a watch. It counts if the server ends it with a 410.
type stream struct {
	io.ReadCloser
	expired *atomic.Int64
	tail    []byte // the last bytes that were read, or all from the error on
	over    bool
}

// Read implements io.Reader.
func (s *stream) Read(b []byte) (int, error) {
	const event, code = `"type":"ERROR"`, `"code":410`
	n, err := s.ReadCloser.Read(b)
	if s.over {
		return n, err
	}
	s.tail = append(s.tail, b[:n]...)
	at := bytes.Index(s.tail, []byte(event))
	if at < 0 {
		at = max(0, len(s.tail)-len(event))
	} else if bytes.Contains(s.tail[at:], []byte(code)) {
		s.over = true
		s.expired.Add(1)
	}
	s.tail = bytes.Clone(s.tail[at:])
	return n, err
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
