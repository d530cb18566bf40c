// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/raceshare"
)

var simStart = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// A simNode is the drain of one node, as a Drainer does it: passes that wait for their answers, woken by changes or by the clock.
type simNode struct {
	m      *simServer
	s      *Scheduler
	name   string
	pods   []*simPod
	began  time.Time
	ended  time.Time
	busy   int  // answers that the pass waits for
	dirty  bool // something has changed since the pass began
	timer  int  // only the newest timer counts
	passes int
}

// wake asks for a pass. Pods elsewhere have a nil node.
func (n *simNode) wake() {
	if n == nil {
		return
	}
	if n.busy > 0 {
		n.dirty = true
		return
	}
	if n.ended.IsZero() {
		n.timer++
		n.m.after(n.m.between(0, 5), n.timed(n.timer))
	}
}

func (n *simNode) timed(timer int) func() {
	return func() {
		if timer == n.timer && n.busy == 0 && n.ended.IsZero() {
			n.pass()
		}
	}
}

func (n *simNode) lost(p *simPod) {
	if n == nil {
		return
	}
	n.pods = slices.DeleteFunc(n.pods, func(q *simPod) bool { return p == q })
	n.s.left(p.ref)
	n.wake()
}

func (n *simNode) pass() {
	n.passes++
	n.dirty = false
	var seen []*policyv1.PodDisruptionBudget
	for _, b := range n.m.budgets {
		if b.cached != nil {
			seen = append(seen, b.cached)
		}
	}
	n.s.observe(seen)
	d := demand{remaining: len(n.pods), since: n.began, budgets: map[types.NamespacedName]int{}}
	var leave []*simPod
	for _, p := range n.pods {
		switch {
		case p.cachedEnding:
			n.s.left(p.ref)
		case !p.accepted:
			leave = append(leave, p)
			d.budgets[p.budget.key]++
		}
	}
	if len(n.pods) == 0 {
		n.ended = n.m.now
		n.s.forget(n.name)
		return
	}
	n.s.want(n.name, d)
	n.send(leave)
}

func (n *simNode) send(leave []*simPod) {
	var after time.Duration
	closed := map[*simBudget]bool{} // what one pod was refused for, the next would be
	for _, p := range leave {
		if closed[p.budget] {
			continue
		}
		t, r := n.s.take(n.name, p.ref, p.budget.key)
		if r != nil {
			if after == 0 || r.after < after {
				after = r.after
			}
			closed[p.budget] = r.reason != WaitingForRate
			continue
		}
		n.busy++
		n.m.evict(p, func(a Answer) {
			t.done(a)
			p.accepted = p.accepted || a.Verdict == verdictAccepted
			if n.busy--; n.busy == 0 {
				n.timer++
				n.m.after(n.m.between(0, 5), n.timed(n.timer))
			}
		})
	}
	if n.busy == 0 && after > 0 {
		n.timer++
		n.m.after(after, n.timed(n.timer))
	}
}

// A simCase is one fleet to drain.
type simCase struct {
	name                 string
	nodes, pods, budgets int
	maxUnavailable       int // of each budget
	options              SchedulerOptions
	overload             [2]time.Duration
	lost                 float64
	others               bool          // somebody else evicts under the same budgets
	limit                time.Duration // for the whole drain
}

var simOneMaintenance = []simCase{
	// A round is what replaces a pod: at most 3.5 s, and 0.4 s for the controller and the watch; 15 % more is the limit.
	{name: "tight budget", nodes: 10, pods: 50, budgets: 1, maxUnavailable: 5, limit: 100 * 3900 * time.Millisecond * 115 / 100},
	{name: "one at a time", nodes: 10, pods: 20, budgets: 4, maxUnavailable: 1, limit: 50 * 3900 * time.Millisecond * 115 / 100},
	// The rate bounds it: 500 evictions at 20 a second, after a burst.
	{name: "wide open budget", nodes: 10, pods: 50, budgets: 1, maxUnavailable: 500, limit: 32 * time.Second},
	{name: "several budgets", nodes: 20, pods: 30, budgets: 6, maxUnavailable: 4, limit: 25 * 3900 * time.Millisecond * 115 / 100},
	{name: "many nodes", nodes: 50, pods: 6, budgets: 3, maxUnavailable: 5, limit: 20 * 3900 * time.Millisecond * 115 / 100},
	{name: "lost answers", nodes: 10, pods: 20, budgets: 4, maxUnavailable: 3, lost: 0.05, limit: 2 * time.Minute},
	{name: "overload", nodes: 10, pods: 20, budgets: 4, maxUnavailable: 3, overload: [2]time.Duration{3 * time.Second, 20 * time.Second}, limit: 3 * time.Minute},
	{name: "others evict too", nodes: 10, pods: 20, budgets: 2, maxUnavailable: 5, others: true, limit: 10 * time.Minute},
	{name: "few in flight", nodes: 10, pods: 20, budgets: 4, maxUnavailable: 20, options: SchedulerOptions{Rate: 5, Burst: 1, InFlight: 2, PerBudget: 1}, limit: time.Minute},
}

func (c simCase) start(t *testing.T, seed uint64) (*simServer, []*simNode) {
	t.Helper()
	m := &simServer{now: simStart, r: rand.New(rand.NewPCG(seed, 1)), overload: c.overload, lost: c.lost}
	c.options.Now = func() time.Time { return m.now }
	s, err := NewScheduler(c.options)
	if err != nil {
		t.Fatal(err)
	}
	s.random = m.r.Float64
	for i := range c.budgets {
		m.budget(fmt.Sprintf("b%d", i), c.nodes*c.pods/c.budgets-c.maxUnavailable)
	}
	var nodes []*simNode
	for i := range c.nodes {
		n := &simNode{m: m, s: s, name: fmt.Sprintf("node-%03d", i), began: simStart}
		for j := range c.pods {
			n.pods = append(n.pods, m.pod(m.budgets[(i*c.pods+j)%c.budgets], n))
		}
		nodes = append(nodes, n)
		for _, b := range m.budgets {
			b.changed = append(b.changed, n.wake)
		}
	}
	for _, b := range m.budgets {
		m.control(b)
	}
	for _, n := range nodes {
		m.after(m.between(0, 300), n.wake)
	}
	if c.others {
		m.after(time.Second, m.interfere)
	}
	return m, nodes
}

// The server never finds a budget broken, hardly ever has to refuse, and nodes finish one after another (R-DR-02, R-DR-19): over
// random delays of watches, controller and answers.
func TestFleetDrainsWithinItsBudgets(t *testing.T) {
	t.Parallel()
	for _, c := range simOneMaintenance {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range raceshare.Of(t, uint64(3)) {
				m, nodes := c.start(t, seed)
				if !m.run(c.limit, func() bool { return !slices.ContainsFunc(nodes, func(n *simNode) bool { return n.ended.IsZero() }) }) {
					t.Errorf("seed %d: the drain is not done after %v", seed, c.limit)
				}
				for _, b := range m.broken {
					t.Errorf("seed %d: %s", seed, b)
				}
				if m.refused*50 > m.evictions && !c.others {
					t.Errorf("seed %d: got %d of %d evictions refused, want at most 2 %%", seed, m.refused, m.evictions)
				}
				if m.overloaded > 20 {
					t.Errorf("seed %d: got %d evictions sent to an overloaded server, want at most 20", seed, m.overloaded)
				}
				c.checkOrder(t, seed, m.now, nodes)
				checkForgets(t, m, nodes[0].s)
			}
		})
	}
}

// checkOrder fails when the nodes did not finish spread over the time of the whole drain.
func (c simCase) checkOrder(t *testing.T, seed uint64, end time.Time, nodes []*simNode) {
	t.Helper()
	total, half := end.Sub(simStart), 0
	for _, n := range nodes {
		if !n.ended.IsZero() && n.ended.Sub(simStart) < total*6/10 {
			half++
		}
	}
	if half < len(nodes)*3/10 && c.overload[1] == 0 {
		t.Errorf("seed %d: got %d of %d nodes done after 6/10 of the time (%v), want 3/10 of them", seed, half, len(nodes), total)
	}
}

// checkForgets fails when anything is remembered long after the drain.
func checkForgets(t *testing.T, m *simServer, s *Scheduler) {
	t.Helper()
	m.now = m.now.Add(time.Minute)
	if got := s.spent(); len(got) != 0 {
		t.Errorf("got %v spent a minute after the drain, want nothing", got)
	}
	m.now = m.now.Add(budgetKept)
	s.spent()
	if len(s.nodes)+len(s.budgets)+len(s.units)+len(s.flying) != 0 {
		t.Errorf("got %d nodes, %d budgets, %d units, %d in flight long after the drain, want none",
			len(s.nodes), len(s.budgets), len(s.units), len(s.flying))
	}
}
