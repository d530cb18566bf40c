// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/belayproject/belay/internal/bench/audit"
	"github.com/belayproject/belay/internal/testenv"
)

// auditPolicy logs what the administrator asks: controllers, agents, the peer, and whoever measures. Their user agents tell them apart. Servers of the
// control plane are other users.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["` + testenv.Admin + `"]
- level: None
`

// lag is how long the audit log may be behind the answers.
const lag = time.Second

// A traffic is what was asked in some time.
type traffic struct {
	// calls are those that are counted, by verb and resource.
	calls map[string]int
	// reads and writes are the same calls.
	reads, writes int
	// These are not among them. Refused evictions are evictions too.
	evictions, refused, watches, leases int
}

// traffics reads the audit log from its beginning, and sums up what was received from one time until another, by user agent.
func (f *fleet) traffics(ctx context.Context, from, until time.Time) (map[string]*traffic, error) {
	if !pause(ctx, lag) {
		return nil, ctx.Err()
	}
	all := map[string]*traffic{}
	err := audit.New(f.Env.AuditLog()).Read(func(r audit.Request) {
		if r.Received.Before(from) || !r.Received.Before(until) {
			return
		}
		if all[r.Agent] == nil {
			all[r.Agent] = &traffic{calls: map[string]int{}}
		}
		all[r.Agent].add(r)
	})
	return all, err
}

func (t *traffic) add(r audit.Request) {
	switch {
	case r.Resource == "leases":
		t.leases++
		return
	case r.Verb == "watch":
		t.watches++
		return
	case r.Subresource == "eviction":
		if t.evictions++; r.Code == http.StatusTooManyRequests {
			t.refused++
		}
		return
	}
	what := r.Verb + " " + cmp.Or(r.Resource, "of other paths")
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	t.calls[what]++
	if r.Verb == "get" || r.Verb == "list" {
		t.reads++
	} else {
		t.writes++
	}
}

// together sums up what was asked by all user agents with a prefix.
func together(all map[string]*traffic, prefix string) *traffic {
	sum := &traffic{calls: map[string]int{}}
	for agent, t := range all {
		if !strings.HasPrefix(agent, prefix) {
			continue
		}
		for what, n := range t.calls {
			sum.calls[what] += n
		}
		sum.reads, sum.writes, sum.watches, sum.leases = sum.reads+t.reads, sum.writes+t.writes, sum.watches+t.watches, sum.leases+t.leases
		sum.evictions, sum.refused = sum.evictions+t.evictions, sum.refused+t.refused
	}
	return sum
}

// control is how many calls there were.
func (t *traffic) control() int { return t.reads + t.writes }

// total is how many there were with evictions.
func (t *traffic) total() int { return t.control() + t.evictions }

// of lists the calls, the most frequent first, each with how many come to one of so many nodes.
func (t *traffic) of(nodes int) string {
	names := slices.SortedFunc(maps.Keys(t.calls), func(a, b string) int { return cmp.Or(t.calls[b]-t.calls[a], strings.Compare(a, b)) })
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = fmt.Sprintf("%.2f %s", each(t.calls[name], nodes), name)
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

// each is how many of something come to one of so many nodes.
func each(n, nodes int) float64 { return float64(n) / float64(nodes) }
