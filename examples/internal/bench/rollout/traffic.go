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

	"github.com/belayproject/belay/examples/internal/bench/audit"
	"github.com/belayproject/belay/internal/backoff"
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
	// looks are reads of pods, by verb and resource: a drain asks whether they are gone. They are not among the calls.
	looks map[string]int
	// Neither are these. Refused evictions are evictions too.
	evictions, refused, watches, leases int
}

func newTraffic() *traffic { return &traffic{calls: map[string]int{}, looks: map[string]int{}} }

// traffics reads the audit log from its beginning, and sums up what was received from one time until another, by user agent.
func (f *fleet) traffics(ctx context.Context, from, until time.Time) (map[string]*traffic, error) {
	if !backoff.Sleep(ctx, lag) {
		return nil, ctx.Err()
	}
	all := map[string]*traffic{}
	err := audit.New(f.Env.AuditLog()).Read(func(r audit.Request) {
		if r.Received.Before(from) || !r.Received.Before(until) {
			return
		}
		if all[r.Agent] == nil {
			all[r.Agent] = newTraffic()
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
	if r.Code == http.StatusConflict {
		what += " in vain" // somebody else had written first
	}
	reads := r.Verb == "get" || r.Verb == "list"
	switch {
	case reads && r.Resource == "pods":
		t.looks[what]++
		return
	case reads:
		t.reads++
	default:
		t.writes++
	}
	t.calls[what]++
}

// together sums up what was asked by all user agents with a prefix.
func together(all map[string]*traffic, prefix string) *traffic {
	sum := newTraffic()
	for agent, t := range all {
		if !strings.HasPrefix(agent, prefix) {
			continue
		}
		for what, n := range t.calls {
			sum.calls[what] += n
		}
		for what, n := range t.looks {
			sum.looks[what] += n
		}
		sum.reads, sum.writes, sum.watches, sum.leases = sum.reads+t.reads, sum.writes+t.writes, sum.watches+t.watches, sum.leases+t.leases
		sum.evictions, sum.refused = sum.evictions+t.evictions, sum.refused+t.refused
	}
	return sum
}

// control is how many calls there were.
func (t *traffic) control() int { return t.reads + t.writes }

// looked is how often it was looked at pods.
func (t *traffic) looked() (n int) {
	for _, looks := range t.looks {
		n += looks
	}
	return n
}

// drain is what drains have asked.
func (t *traffic) drain() int { return t.evictions + t.looked() }

// total is how many there were with those of drains.
func (t *traffic) total() int { return t.control() + t.drain() }

// of lists the calls, each with how many come to one of so many nodes.
func (t *traffic) of(nodes int) string { return list(t.calls, nodes) }

// list lists calls, the most frequent first.
func list(calls map[string]int, nodes int) string {
	names := slices.SortedFunc(maps.Keys(calls), func(a, b string) int { return cmp.Or(calls[b]-calls[a], strings.Compare(a, b)) })
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = fmt.Sprintf("%.2f %s", each(calls[name], nodes), name)
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

// each is how many of something come to one of so many nodes.
func each(n, nodes int) float64 { return float64(n) / float64(nodes) }
