// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// calls are requests, by method and resource.
type calls struct {
	mu sync.Mutex
	n  counts
}

type counts map[string]int

func newCalls() *calls { return &calls{n: counts{}} }

// take returns what was counted, and begins anew.
func (c *calls) take() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	c.n = counts{}
	return n
}

// writes are those that change something.
func (c counts) writes() (n int) {
	for what, times := range c {
		if !strings.HasPrefix(what, http.MethodGet+" ") {
			n += times
		}
	}
	return n
}

func (c counts) String() string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %d", what, c[what]))
	}
	return strings.Join(parts, ", ")
}

// counting is a transport that counts.
type counting struct {
	next  http.RoundTripper
	calls *calls
}

func (t counting) RoundTrip(r *http.Request) (*http.Response, error) {
	t.calls.mu.Lock()
	t.calls.n[r.Method+" "+resource(r.URL.Path)]++
	t.calls.mu.Unlock()
	return t.next.RoundTrip(r)
}

// resource is what a path is about, without names.
func resource(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, p := range parts {
		switch p {
		case "machines", "machinesets", "machinedeployments", "machinehealthchecks", "nodes":
			if i+2 < len(parts) {
				return p + "/" + parts[i+2]
			}
			return p
		}
	}
	return path
}
