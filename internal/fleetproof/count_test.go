// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"net/http"
	"strings"
	"sync/atomic"
)

// calls are what agents ask of the API server.
type calls struct {
	all, lists, watches, throttled atomic.Int64

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
	if err != nil && c.failed != nil {
		c.failed(r)
	}
	if err == nil && response.StatusCode == http.StatusTooManyRequests {
		c.throttled.Add(1)
	}
	return response, err
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
