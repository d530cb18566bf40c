// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/internal/bench/audit"
)

const (
	// agentName begins the user agent of the requests of examples/agent.
	agentName = "belay-agent/"
	// renewal is the least time between two renewals of the agent's Lease, by the default of --lease-duration.
	renewal = 10 * time.Second
	// rewatch is the least time after which the client library ends a watch to begin it anew: it draws from this to twice as much.
	rewatch = 5 * time.Minute
	// resync is after what time, at the latest, an agent looks again although nothing has changed.
	resync = 10 * time.Minute
	// asksGuard is how a request is told of by which the agent asks whether the policy still holds it: it is refused, as it should be.
	asksGuard = "create leases (dry run, refused: the guard is asked)"
)

// restWatches are the kinds of which the agent at rest has a watch, one each.
var restWatches = []string{"nodeconfigs", "nodeshadows"}

// A tally is what the agent has asked of the API server in some time.
type tally struct {
	renewals int            // of its Lease
	watches  map[string]int // that were begun, by resource
	calls    map[string]int // everything else, by verb and resource
}

func newTally() *tally { return &tally{watches: map[string]int{}, calls: map[string]int{}} }

// add takes a request in, if it is the agent's.
func (t *tally) add(r audit.Request) {
	switch {
	case !strings.HasPrefix(r.Agent, agentName):
	case r.Resource == "leases" && r.Verb == "update":
		t.renewals++
	case r.Verb == "watch":
		t.watches[r.Resource]++
	case r.Resource == "leases" && r.Verb == "create" && r.Code == http.StatusForbidden:
		t.calls[asksGuard]++
	default:
		what := r.Verb + " " + r.Resource
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		t.calls[what]++
	}
}

// total is how many calls there were.
func (t *tally) total() (n int) {
	for _, k := range t.calls {
		n += k
	}
	return n
}

// atMost is how often something that is never sooner than every time after the last can happen in a window.
func atMost(window, every time.Duration) int { return int(window/every) + 1 }

// begun is how many watches there were, and excess why they are more than one of each kind explains; nil where they are not.
func (t *tally) begun(window time.Duration) (n int, excess []string) {
	for _, resource := range slices.Sorted(maps.Keys(t.watches)) {
		most := 0
		if slices.Contains(restWatches, resource) {
			most = atMost(window, rewatch)
		}
		k := t.watches[resource]
		if n += k; k > most {
			excess = append(excess, fmt.Sprintf("%d of %s, of which there may be %d", k, resource, most))
		}
	}
	return n, excess
}
