// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A demand is what one drain wants now.
type demand struct {
	remaining int       // pods of the node that still have to leave
	since     time.Time // when its drain began: the tie-breaker, older first, then the node's name
	// budgets counts the pods that it would evict now under each budget, with those that only the budget holds back: what comes free
	// is kept for a node by that number, whoever asks first.
	budgets map[types.NamespacedName]int
	asks    int // pods about which the server is asked though their budgets hold them back
}

const (
	demandLife = time.Minute     // a demand that was not refreshed for so long no longer counts
	waitGrace  = 2 * time.Second // how late a node may come back for its place in the queue
	fairTurn   = 10              // of so many tickets that nodes wait for, one goes to the node that waits longest
)

// A schedNode is what the scheduler knows of a draining node.
type schedNode struct {
	name      string
	remaining int
	since     time.Time
	budgets   []types.NamespacedName // where it stands in wants
	at        time.Time              // when it said so

	short    int       // evictions that it still waits for, as far as it has asked since its demand
	waiting  time.Time // when the first was, since it last got a ticket
	waitsFor time.Time // until when its place in the queue is kept
	asks     int       // see demand
	asksAt   time.Time // when its turn to ask is
}

func (n *schedNode) live(now time.Time) bool   { return now.Sub(n.at) < demandLife }
func (n *schedNode) queues(now time.Time) bool { return !n.waiting.IsZero() && !now.After(n.waitsFor) }

// claim is the node's place and number among others.
func (n *schedNode) claim(units int) claim {
	return claim{node: n.name, remaining: n.remaining, since: n.since, units: units}
}

// A claim is what one node wants of something scarce.
type claim struct {
	node      string
	first     bool // before all others
	remaining int
	since     time.Time
	units     int
}

// compare orders claims: the node with the fewest pods left comes first, so that nodes finish one after another instead of all being
// half empty.
func (c claim) compare(d claim) int {
	switch {
	case c.first != d.first && c.first:
		return -1
	case c.first != d.first:
		return 1
	}
	return cmp.Or(cmp.Compare(c.remaining, d.remaining), c.since.Compare(d.since), cmp.Compare(c.node, d.node))
}

// allot hands units out in order. It returns how many one of the claims gets, and how many are wanted by those before it. It is pure.
func allot(claims iter.Seq[claim], mine claim, units int) (gets, before int) {
	for c := range claims {
		if c.node != mine.node && c.compare(mine) < 0 {
			before += max(0, c.units)
		}
	}
	return max(0, min(mine.units, units-before)), before
}

// mine is the claim of the node that asks: behind everybody if it never said what it wants.
func (s *Scheduler) mine(node string, units int) claim {
	if n := s.nodes[node]; n != nil {
		return n.claim(max(1, units))
	}
	return claim{node: node, remaining: math.MaxInt, units: max(1, units)}
}

// permit refuses when the bucket or the bound of evictions under way leaves nothing for this node after those who come before it.
func (s *Scheduler) permit(node string, now time.Time) *refusal {
	slots := s.o.InFlight - len(s.flying)
	free := min(s.bucket.fill(now), slots)
	claims, mine := s.queue(node, now)
	n := s.nodes[node]
	gets, before := allot(slices.Values(claims), mine, free)
	if gets > 0 {
		s.bucket.take()
		if len(claims) > 0 || mine.first {
			s.turns.tickets = (s.turns.tickets + 1) % fairTurn
		}
		if n != nil {
			n.waiting, n.short = time.Time{}, max(0, n.short-1)
		}
		return nil
	}
	r := &refusal{reason: WaitingForRate, after: s.later(before - max(0, free))}
	r.message = fmt.Sprintf("at most %v evictions a second start, and %d are under way at once", s.o.Rate, s.o.InFlight)
	if before > 0 {
		r.message += fmt.Sprintf("; %d of other nodes come first", before)
	}
	if n != nil {
		if !n.queues(now) {
			n.waiting = now
		}
		n.short = min(n.short+1, max(1, n.remaining)) // a pod may be asked for again and again
		n.waitsFor = now.Add(r.after + waitGrace)
	}
	return r
}

// queue returns the claims of the nodes that wait for the rate, and that of the node which asks. Mostly the fewest pods left come
// first; one ticket of fairTurn goes to the longest waiting node, so that nobody starves.
func (s *Scheduler) queue(node string, now time.Time) (claims []claim, mine claim) {
	mine = s.mine(node, 1)
	var longest *schedNode
	for _, n := range s.nodes {
		if !n.queues(now) || n.short == 0 && n.name != node {
			continue
		}
		if longest == nil || n.waiting.Before(longest.waiting) || n.waiting.Equal(longest.waiting) && n.name < longest.name {
			longest = n
		}
		if n.name != node {
			claims = append(claims, n.claim(n.short))
		}
	}
	if longest == nil || s.turns.tickets != fairTurn-1 {
		return claims, mine
	}
	if longest.name == node {
		mine.first = true
	}
	for i := range claims {
		if claims[i].node == longest.name {
			claims[i].first, claims[i].units = true, 1
		}
	}
	return claims, mine
}

// A schedBucket is a token bucket on a given clock. It starts full.
type schedBucket struct {
	rate, burst float64
	tokens      float64
	at          time.Time
}

// fill returns how many whole tokens there are now. A clock that goes back gives none.
func (b *schedBucket) fill(now time.Time) int {
	if b.at.IsZero() {
		b.tokens = b.burst
	} else if gone := now.Sub(b.at); gone > 0 {
		b.tokens = min(b.burst, b.tokens+gone.Seconds()*b.rate)
	}
	b.at = now
	return int(b.tokens + 1e-9) // what was waited for exactly counts, although sums of floats fall short of it
}

func (b *schedBucket) take() { b.tokens = max(0, b.tokens-1) }
