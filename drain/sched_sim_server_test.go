// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The model of a server, its disruption controller, and the watches, each with delays of its own, in simulated time.
type simServer struct {
	now      time.Time
	events   simEvents
	r        *rand.Rand
	rev      int
	budgets  []*simBudget
	overload [2]time.Duration // from when until when the server answers 429, from the start
	lost     float64          // how many of the answers are lost

	evictions, refused, accepted, unknown, overloaded int
	broken                                            []string
}

type simBudget struct {
	key     types.NamespacedName
	desired int
	pdb     *policyv1.PodDisruptionBudget // never changed in place
	cached  *policyv1.PodDisruptionBudget
	inOrder time.Time // when the watch delivered last
	updated time.Time // when an eviction last wrote the status
	pods    map[string]*simPod
	changed []func() // told when the cache has something new
}

type simPod struct {
	ref    PodRef
	budget *simBudget
	node   *simNode // nil for a replacement, which is elsewhere

	ready, ending, gone    bool // at the server
	sawReady, sawEnding    bool // what the controller has seen
	cachedEnding, accepted bool // what the drain has seen
}

type simEvent struct {
	at  time.Time
	seq int
	do  func()
}

type simEvents struct {
	list []simEvent
	seq  int
}

func (e *simEvents) Len() int { return len(e.list) }
func (e *simEvents) Less(i, j int) bool {
	a, b := e.list[i], e.list[j]
	return a.at.Before(b.at) || a.at.Equal(b.at) && a.seq < b.seq
}
func (e *simEvents) Swap(i, j int) { e.list[i], e.list[j] = e.list[j], e.list[i] }
func (e *simEvents) Push(x any)    { e.list = append(e.list, x.(simEvent)) }
func (e *simEvents) Pop() any {
	last := e.list[len(e.list)-1]
	e.list = e.list[:len(e.list)-1]
	return last
}

func (m *simServer) after(d time.Duration, do func()) {
	m.events.seq++
	heap.Push(&m.events, simEvent{m.now.Add(d), m.events.seq, do})
}

// between draws a delay in milliseconds.
func (m *simServer) between(low, high int) time.Duration {
	return time.Duration(low+m.r.IntN(high-low+1)) * time.Millisecond
}

// run lets time pass until done, or for as long as limit.
func (m *simServer) run(limit time.Duration, done func() bool) bool {
	end := m.now.Add(limit)
	for !done() {
		if m.events.Len() == 0 || m.now.After(end) {
			return false
		}
		e := heap.Pop(&m.events).(simEvent)
		m.now = e.at
		e.do()
	}
	return true
}

func (m *simServer) budget(name string, desired int) *simBudget {
	b := &simBudget{key: types.NamespacedName{Namespace: "ns", Name: name}, desired: desired, pods: map[string]*simPod{}}
	b.pdb = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	m.budgets = append(m.budgets, b)
	return b
}

func (m *simServer) pod(b *simBudget, node *simNode) *simPod {
	m.rev++
	p := &simPod{budget: b, node: node, ready: node != nil, sawReady: node != nil}
	p.ref = PodRef{Namespace: "ns", Name: fmt.Sprintf("pod-%d", m.rev), UID: types.UID(strconv.Itoa(m.rev))}
	b.pods[p.ref.Name] = p
	return p
}

// write stores a status and lets the watch deliver it, in order.
func (m *simServer) write(b *simBudget, change func(*policyv1.PodDisruptionBudgetStatus)) {
	m.rev++
	next := b.pdb.DeepCopy()
	next.ResourceVersion = strconv.Itoa(m.rev)
	if next.Status.DisruptedPods == nil {
		next.Status.DisruptedPods = map[string]metav1.Time{}
	}
	change(&next.Status)
	b.pdb = next
	at := m.now.Add(m.between(1, 120))
	if at.Before(b.inOrder) {
		at = b.inOrder
	}
	b.inOrder = at
	m.after(at.Sub(m.now), func() {
		b.cached = next
		for _, told := range b.changed {
			told()
		}
	})
}

// control is the disruption controller: it counts what it has seen of the pods, without those that are about to go.
func (m *simServer) control(b *simBudget) {
	healthy, entries := 0, map[string]metav1.Time{}
	for name, p := range b.pods {
		entry, listed := b.pdb.Status.DisruptedPods[name]
		if listed && !p.sawEnding {
			entries[name] = entry
		}
		if p.sawReady && !p.sawEnding && !listed {
			healthy++
		}
	}
	allowed := max(0, healthy-b.desired)
	old := b.pdb.Status
	if int(old.CurrentHealthy) == healthy && int(old.DisruptionsAllowed) == allowed && len(old.DisruptedPods) == len(entries) {
		return
	}
	m.write(b, func(s *policyv1.PodDisruptionBudgetStatus) {
		s.CurrentHealthy, s.DesiredHealthy, s.ExpectedPods = int32(healthy), int32(b.desired), int32(len(b.pods))
		s.DisruptionsAllowed, s.DisruptedPods = int32(allowed), entries
	})
}

// controlLater is the way from a change of a pod to the controller.
func (m *simServer) controlLater(b *simBudget, see func()) {
	m.after(m.between(5, 100), func() {
		see()
		m.after(m.between(5, 50), func() { m.control(b) })
	})
}

// evict is one eviction, from the request to the answer.
func (m *simServer) evict(p *simPod, answer func(Answer)) {
	m.evictions++
	reply := func(v Verdict) {
		m.after(m.between(1, 30), func() {
			if v == verdictAccepted && m.r.Float64() < m.lost {
				m.unknown++
				v = verdictUnknown
			}
			answer(Answer{Verdict: v})
		})
	}
	m.after(m.between(5, 100), func() { m.decide(p, reply, 0) })
}

func (m *simServer) decide(p *simPod, reply func(Verdict), tries int) {
	b := p.budget
	up := m.now.Sub(simStart)
	switch {
	case up >= m.overload[0] && up < m.overload[1]:
		m.overloaded++
		reply(verdictOverloaded)
	case p.gone:
		reply(verdictGone)
	case p.ending:
		reply(verdictAccepted)
	case b.pdb.Status.DisruptionsAllowed == 0:
		m.refused++
		reply(verdictBudgetExhausted)
	case m.now.Sub(b.updated) < 3*time.Millisecond && tries >= 20:
		reply(verdictBudgetContended)
	case m.now.Sub(b.updated) < 3*time.Millisecond:
		m.after(500*time.Millisecond, func() { m.decide(p, reply, tries+1) })
	default:
		b.updated = m.now
		m.write(b, func(s *policyv1.PodDisruptionBudgetStatus) {
			s.DisruptionsAllowed--
			s.DisruptedPods[p.ref.Name] = metav1.NewTime(m.now.Truncate(time.Second))
		})
		m.after(m.between(2, 15), func() {
			m.end(p)
			reply(verdictAccepted)
		})
	}
}

// end sets the deletion timestamp: a replacement starts at once, and the pod is gone after its grace period.
func (m *simServer) end(p *simPod) {
	b := p.budget
	p.ending = true
	m.accepted++
	healthy := 0
	for _, q := range b.pods {
		if q.ready && !q.ending {
			healthy++
		}
	}
	if healthy < b.desired {
		m.broken = append(m.broken, fmt.Sprintf("%v: %d pods of budget %s are healthy, want %d", m.now.Sub(simStart), healthy, b.key, b.desired))
	}
	m.controlLater(b, func() { p.sawEnding = true })
	m.after(m.between(1, 120), func() {
		p.cachedEnding = true
		p.node.wake()
	})
	m.after(m.between(1500, 2500), func() {
		p.gone = true
		delete(b.pods, p.ref.Name)
		m.controlLater(b, func() {})
		m.after(m.between(1, 120), func() { p.node.lost(p) })
	})
	q := m.pod(b, nil)
	m.after(m.between(2500, 3500), func() {
		q.ready = true
		m.controlLater(b, func() { q.sawReady = true })
	})
}

// interfere is another client that evicts a pod now and then, elsewhere, from a budget that allows it.
func (m *simServer) interfere() {
	b := m.budgets[m.r.IntN(len(m.budgets))]
	for _, name := range slices.Sorted(maps.Keys(b.pods)) {
		if p := b.pods[name]; p.ready && !p.ending && b.pdb.Status.DisruptionsAllowed > 0 {
			m.decide(p, func(Verdict) {}, 0)
			break
		}
	}
	if m.now.Sub(simStart) < time.Minute {
		m.after(m.between(200, 2000), m.interfere)
	}
}
