// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SchedulerOptions limits what a process asks of the API server. The zero value is meant for production.
type SchedulerOptions struct {
	// Rate is how many evictions a second may start, over all nodes; zero means 20. Burst is how many at once; zero means 40.
	Rate  float64
	Burst int
	// InFlight is how many evictions may be under way at once; zero means 32. PerBudget is the same for one budget, which is also
	// never more than it allows, and one for each 16 pods that could go under it: the API server sleeps for half a second where two meet at a budget.
	// Zero means 16.
	InFlight  int
	PerBudget int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// complete checks the options and fills in the defaults.
func (o SchedulerOptions) complete() (SchedulerOptions, error) {
	// An infinite rate is refused too: no option may mean "as fast as possible".
	if math.IsNaN(o.Rate) || math.IsInf(o.Rate, 0) || o.Rate < 0 {
		return o, fmt.Errorf("new scheduler: Rate is %v, want a positive number, or 0 for the default", o.Rate)
	}
	for _, f := range []struct {
		name  string
		value *int
		usual int
	}{{"Burst", &o.Burst, 40}, {"InFlight", &o.InFlight, 32}, {"PerBudget", &o.PerBudget, 16}} {
		if *f.value < 0 {
			return o, fmt.Errorf("new scheduler: %s is %d, want a positive number, or 0 for the default", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.usual
		}
	}
	if o.Rate == 0 {
		o.Rate = 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

// A Scheduler shares the right to evict among all drains of a process: a token bucket, a bound for evictions under way, for each
// budget what it allows less what has been spent, nodes with the fewest pods left first, and a global back-off when the
// server is overloaded. It keeps nothing that has to survive.
type Scheduler struct {
	o SchedulerOptions // complete, and never changed

	mu      sync.Mutex // guards all below; never held across I/O
	nodes   map[string]*schedNode
	budgets map[types.NamespacedName]*schedBudget
	units   map[PodRef]*schedUnit // those of all budgets
	flying  map[PodRef]*ticket
	bucket  schedBucket
	turns   schedTurns
	server  schedBackoff
	tickets uint64         // how many were given: orders answers by when they were asked for
	random  func() float64 // in [0,1)
	swept   time.Time
}

// schedTurns orders those that wait.
type schedTurns struct {
	tickets   int       // given since the longest waiting node came first
	asksUntil time.Time // when all nodes that have a turn to ask will have had it
}

// NewScheduler checks the options and returns a Scheduler.
func NewScheduler(o SchedulerOptions) (*Scheduler, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	return &Scheduler{
		o:       o,
		nodes:   map[string]*schedNode{},
		budgets: map[types.NamespacedName]*schedBudget{},
		units:   map[PodRef]*schedUnit{},
		flying:  map[PodRef]*ticket{},
		bucket:  schedBucket{rate: o.Rate, burst: float64(o.Burst)},
		server:  schedBackoff{first: overloadFirst, most: overloadMost},
		random:  rand.Float64,
	}, nil
}

// What the scheduler says when there is nothing better to go by.
const (
	schedRecheck  = 2 * time.Second // only evictions of this process stand in the way: their effect is seen soon
	askShortest   = time.Second     // an eviction that will hardly be accepted has time
	schedShortest = 50 * time.Millisecond
	schedLongest  = 2 * time.Minute
	schedSweep    = 10 * time.Second
)

// A refusal is why a pod cannot be evicted now.
type refusal struct {
	reason  Reason
	after   time.Duration // when to ask again at the latest; above zero
	message string
}

// A ticket is the right to send one eviction.
type ticket struct {
	s      *Scheduler
	pod    PodRef
	budget *schedBudget // nil for an unguarded pod
	number uint64
	ended  bool
}

// observe takes in the newest known state of budgets. One that is older than what is known already is ignored: passes run at
// the same time, and their caches need not be equally far.
func (s *Scheduler) observe(budgets []*policyv1.PodDisruptionBudget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	for _, b := range budgets {
		s.budget(types.NamespacedName{Namespace: b.Namespace, Name: b.Name}, now).observe(b, now)
	}
}

// want replaces what a node wants.
func (s *Scheduler) want(node string, d demand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	n := s.nodes[node]
	if n == nil {
		n = &schedNode{}
		s.nodes[node] = n
	}
	s.unwant(node, n)
	n.name, n.remaining, n.since, n.at, n.asks = node, d.remaining, d.since, now, d.asks
	for key, pods := range d.budgets {
		if pods > 0 && key != (types.NamespacedName{}) {
			n.budgets = append(n.budgets, key)
			s.budget(key, now).wants[node] = pods
		}
	}
}

// unwant takes a node's demand out of the budgets.
func (s *Scheduler) unwant(node string, n *schedNode) {
	for _, key := range n.budgets {
		if b := s.budgets[key]; b != nil {
			delete(b.wants, node)
		}
	}
	n.budgets, n.short = n.budgets[:0], 0
}

// forget drops a node that no longer drains.
func (s *Scheduler) forget(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(node)
}

func (s *Scheduler) drop(node string) {
	if n := s.nodes[node]; n != nil {
		s.unwant(node, n)
		delete(s.nodes, node)
	}
}

// spent counts, for each budget, the evictions that its status does not show yet.
func (s *Scheduler) spent() map[types.NamespacedName]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	out := map[types.NamespacedName]int{}
	for key, b := range s.budgets {
		s.settle(b, now)
		for _, u := range b.units {
			if !u.spentAt.IsZero() && !u.shown {
				out[key]++
			}
		}
	}
	return out
}

// budgetTimes returns the budgets that expect fewer pods than a moment ago, and for each of the given budgets that
// allows no eviction the time from which it counts as stuck.
func (s *Scheduler) budgetTimes(
	of []*policyv1.PodDisruptionBudget,
) (dips map[types.NamespacedName]Dip, stuck map[types.NamespacedName]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	dips, stuck = map[types.NamespacedName]Dip{}, map[types.NamespacedName]time.Time{}
	for key, b := range s.budgets {
		if now.Before(b.dip.Until) {
			dips[key] = b.dip
		}
	}
	for _, pdb := range of {
		key := types.NamespacedName{Namespace: pdb.Namespace, Name: pdb.Name}
		b := s.budgets[key]
		if b == nil || b.seen == nil {
			continue
		}
		if st := &b.seen.Status; st.DisruptionsAllowed <= 0 || st.ObservedGeneration < b.seen.Generation {
			stuck[key] = b.stuckFrom()
		}
	}
	return dips, stuck
}

// left notes that a pod is seen terminating or gone.
func (s *Scheduler) left(pod PodRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.units[pod]; u != nil && !u.left {
		u.left, u.leftAt = true, u.budget.version
	}
}

// takeAsk gives the right to send an eviction that the budget does not allow. It leaves half of the rate, and half of
// the evictions that may be under way, to pods that can leave. Where there is no more, the node gets a turn, after
// those of the nodes before it: of 100 nodes that came back together one would find room, and all again later.
func (s *Scheduler) takeAsk(node string, pod PodRef) (*ticket, *refusal) {
	s.mu.Lock()
	wait := turnToAsk(s, s.nodes[node], s.tick())
	s.mu.Unlock()
	if wait > 0 {
		return nil, &refusal{WaitingForRate, wait, "evictions that their budgets allow come first"}
	}
	return s.take(node, pod, types.NamespacedName{})
}

// turnToAsk is how long the node has to wait until it may ask about a pod that its budget holds back. It may be nil.
func turnToAsk(s *Scheduler, n *schedNode, now time.Time) time.Duration {
	free := float64(s.bucket.fill(now)) > s.bucket.burst/2 && len(s.flying) < (s.o.InFlight+1)/2
	switch {
	case n == nil && free:
		return 0
	case n == nil:
		return askShortest
	case free && !now.Before(n.asksAt):
		n.asks = max(0, n.asks-1)
		return 0
	case !now.Before(n.asksAt):
		if earliest := now.Add(askShortest); s.turns.asksUntil.Before(earliest) {
			s.turns.asksUntil = earliest
		}
		n.asksAt = s.turns.asksUntil
		s.turns.asksUntil = n.asksAt.Add(s.later(min(n.asks, s.o.Burst/2) - 1))
	}
	return min(n.asksAt.Sub(now), schedLongest)
}

// take gives the right to evict a pod of the node now, or says why not. An empty budget means that none guards the pod. It
// never blocks.
func (s *Scheduler) take(node string, pod PodRef, budget types.NamespacedName) (*ticket, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	if s.flying[pod] != nil {
		return nil, &refusal{WaitingForRate, schedRecheck, "an eviction of the pod is under way"}
	}
	if r := s.overloaded(now); r != nil {
		return nil, r
	}
	var b *schedBudget
	if budget != (types.NamespacedName{}) {
		b = s.budget(budget, now)
		s.settle(b, now)
		if r := s.admit(b, node, pod, now); r != nil {
			return nil, r
		}
	}
	if r := s.permit(node, now); r != nil {
		return nil, r
	}
	s.tickets++
	t := &ticket{s: s, pod: pod, budget: b, number: s.tickets}
	s.flying[pod] = t
	if b != nil {
		s.reserve(b, node, pod, now)
	}
	return t, nil
}

// done gives the ticket back, with the server's answer. Only the first call counts.
func (t *ticket) done(a Answer) {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.ended {
		return
	}
	t.ended = true
	delete(s.flying, t.pod)
	now := s.tick()
	switch a.Verdict {
	case verdictOverloaded:
		s.server.raise(now, t.number, s.tickets, a.RetryAfter, s.random())
	case verdictAccepted:
		s.server.reset(t.number)
	}
	if t.budget != nil {
		s.answered(t, a, now)
	}
}

// overloaded refuses while the global back-off lasts. When it is over, one eviction at a time shows whether the server can take
// more, until one is accepted.
func (s *Scheduler) overloaded(now time.Time) *refusal {
	if wait := s.server.wait(now); wait > 0 {
		return &refusal{ServerOverloaded, wait, fmt.Sprintf("the server is overloaded; nothing is sent for %v", wait.Round(time.Millisecond))}
	}
	if s.server.steps > 0 && len(s.flying) > 0 {
		return &refusal{ServerOverloaded, s.later(len(s.nodes)), "the server was overloaded; one eviction at a time tries whether it still is"}
	}
	return nil
}

// tick reads the clock, and now and then drops what nobody needs any more.
func (s *Scheduler) tick() time.Time {
	now := s.o.Now()
	if now.Sub(s.swept) < schedSweep && !now.Before(s.swept) {
		return now
	}
	s.swept = now
	for name, n := range s.nodes {
		switch {
		case n.live(now):
		case now.Before(n.asksAt.Add(demandLife)): // its turn to ask stands
			s.unwant(name, n)
		default:
			s.drop(name)
		}
	}
	for key, b := range s.budgets {
		s.settle(b, now)
		if len(b.units) == 0 && len(b.wants) == 0 && now.Sub(b.touched) > budgetKept {
			delete(s.budgets, key)
		}
	}
	return now
}

// later says when to ask again with so many evictions before one's own.
func (s *Scheduler) later(ahead int) time.Duration {
	seconds := float64(ahead+1) / s.o.Rate
	if seconds >= schedLongest.Seconds() { // also what a Duration could not hold
		return schedLongest
	}
	return max(schedShortest, time.Duration(seconds*float64(time.Second)))
}
