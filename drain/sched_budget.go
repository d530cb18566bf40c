// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"iter"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/resourceversion"
)

const (
	budgetKept  = 10 * time.Minute // how long a budget that nobody mentions is remembered
	dipLasts    = time.Minute      // how long a smaller number of expected pods is not yet taken for the new one
	versionKept = 30 * time.Second // an older version is believed when the newer one was not seen for so long: a restored server

	// The server writes the budget's status in each eviction, and sleeps for 500 ms after a conflict with another one (EvictionsRetry of its registry of pods,
	// 1.36). So two at once take longer than sixteen one after the other; only where there are many more do those that sleep cost less than waiting does.
	perConflict = 16
	// An eviction that takes so long is not at the budget any more, but at a webhook or nowhere: others need not wait for it.
	slowEviction = time.Second
)

// A schedBudget is what the scheduler knows of a budget.
type schedBudget struct {
	name    types.NamespacedName
	touched time.Time // when anybody last mentioned it

	seen    *policyv1.PodDisruptionBudget // the newest known state; nil before the first
	seenAt  time.Time                     // when a cache last had it
	since   time.Time                     // when a cache first had it
	version int                           // counts the changes of seen
	dip     Dip

	units  map[PodRef]*schedUnit
	wants  map[string]int // by node
	flying int
	limit  int // of evictions under way
	closed schedBackoff

	acceptedAt time.Time // when the server last accepted an eviction of this process
}

// budget returns the record of a budget.
func (s *Scheduler) budget(key types.NamespacedName, now time.Time) *schedBudget {
	b := s.budgets[key]
	if b == nil {
		b = &schedBudget{
			name:   key,
			units:  map[PodRef]*schedUnit{},
			wants:  map[string]int{},
			limit:  s.o.PerBudget,
			closed: schedBackoff{first: budgetFirst, most: budgetMost},
		}
		s.budgets[key] = b
	}
	b.touched = now
	return b
}

// observe takes in a state of the budget, unless it is older than the known one.
func (b *schedBudget) observe(seen *policyv1.PodDisruptionBudget, now time.Time) {
	switch b.order(seen) {
	case 0:
		b.seenAt = now
		return
	case -1:
		if now.Sub(b.seenAt) < versionKept {
			return
		}
	}
	b.dips(seen, now)
	b.seen, b.seenAt, b.since = seen, now, now
	b.version++
	b.closed.reopen()
	for _, u := range b.units {
		u.look(seen)
	}
}

// dips notes where fewer pods are expected than before.
func (b *schedBudget) dips(seen *policyv1.PodDisruptionBudget, now time.Time) {
	if b.seen == nil || b.seen.UID != seen.UID || seen.Status.ExpectedPods >= b.seen.Status.ExpectedPods {
		return
	}
	most := b.seen.Status.ExpectedPods
	if now.Before(b.dip.Until) {
		most = max(most, b.dip.Pods)
	}
	b.dip = Dip{Pods: most, Until: now.Add(dipLasts)}
}

// order says whether a state is newer than the known one (1), the same (0) or older (-1).
func (b *schedBudget) order(seen *policyv1.PodDisruptionBudget) int {
	if b.seen == nil {
		return 1
	}
	if b.seen == seen || b.seen.UID == seen.UID && b.seen.ResourceVersion == seen.ResourceVersion && seen.ResourceVersion != "" {
		return 0
	}
	if order, err := resourceversion.Compare(seen.ResourceVersion, b.seen.ResourceVersion); err == nil && order != 0 {
		return order
	}
	return 1 // not comparable: what comes later is newer
}

// admit refuses when the budget is closed, or leaves nothing for this node after those who come before it.
func (s *Scheduler) admit(b *schedBudget, node string, pod PodRef, now time.Time) *refusal {
	if b.seen == nil {
		return &refusal{BudgetExhausted, schedRecheck, fmt.Sprintf("budget %q is not known yet", b.name)}
	}
	if wait := b.closed.wait(now); wait > 0 {
		return &refusal{b.closed.reason, wait,
			fmt.Sprintf("the server refused an eviction under budget %q: %s", b.name, b.have())}
	}
	status := &b.seen.Status
	if status.ObservedGeneration < b.seen.Generation {
		return &refusal{BudgetStale, s.idle(b, now), fmt.Sprintf("the status of budget %q is older than its spec", b.name)}
	}
	allowed := int(status.DisruptionsAllowed)
	if allowed <= 0 {
		return &refusal{BudgetExhausted, s.idle(b, now), fmt.Sprintf("budget %q allows none: %s", b.name, b.have())}
	}
	free := allowed - b.reserved(pod)
	if free <= 0 {
		return &refusal{BudgetExhausted, schedRecheck, fmt.Sprintf("budget %q allows %d, which are under way", b.name, allowed)}
	}
	if r := s.crowded(b); r != nil {
		return r
	}
	if gets, before := allot(b.claims(s.nodes, now), s.mine(node, b.wants[node]), free); gets == 0 {
		return &refusal{BudgetExhausted, max(schedRecheck, s.later(before)),
			fmt.Sprintf("budget %q allows %d more, and nodes with fewer pods left want %d", b.name, free, before)}
	}
	if s.paced(b, free, now) {
		return &refusal{WaitingForRate, schedShortest, fmt.Sprintf("another eviction is under way under budget %q, which the server updates for one at a time", b.name)}
	}
	return nil
}

// crowded refuses when as many evictions as allowed are under way under the budget. After a refusal one at a time shows whether it
// allows more, until one is accepted.
func (s *Scheduler) crowded(b *schedBudget) *refusal {
	switch {
	case b.closed.steps > 0 && b.flying > 0:
		return &refusal{b.closed.reason, s.later(len(b.wants)),
			fmt.Sprintf("the server refused an eviction under budget %q; one at a time tries whether it still does", b.name)}
	case b.flying >= b.limit && b.limit < s.o.PerBudget:
		return &refusal{BudgetContended, s.later(len(b.wants)),
			fmt.Sprintf("%d evictions are under way under budget %q, which the server could not update in time", b.flying, b.name)}
	case b.flying >= b.limit:
		return &refusal{WaitingForRate, s.later(len(b.wants)), fmt.Sprintf("%d evictions are under way under budget %q", b.flying, b.name)}
	}
	return nil
}

// paced reports whether what is under way under the budget would only be slowed down by one more: one for each [perConflict] pods that could go. Where
// nobody has said how many want to, it is not.
func (s *Scheduler) paced(b *schedBudget, free int, now time.Time) bool {
	if len(b.wants) == 0 {
		return false
	}
	work, there := 0, 0
	for c := range b.claims(s.nodes, now) {
		work += c.units
	}
	for _, u := range b.units {
		if u.flying && now.Sub(u.sentAt) < slowEviction {
			there++
		}
	}
	work = min(work, free) + b.flying
	return there >= max(1, (work+perConflict-1)/perConflict)
}

// stuckFrom returns the time from which the status of the budget counts as stuck: the server has then refused every
// pod for a while, and no eviction of this process is the cause. Until then a change is expected, and a pod that is
// asked to leave would only be refused.
func (b *schedBudget) stuckFrom() time.Time {
	stuck := b.since.Add(budgetFirst)
	if own := b.acceptedAt.Add(budgetMost); own.After(stuck) {
		return own
	}
	return stuck
}

// have says how the budget's pods are.
func (b *schedBudget) have() string {
	return fmt.Sprintf("%d of its pods are healthy, %d have to be", b.seen.Status.CurrentHealthy, b.seen.Status.DesiredHealthy)
}

// claims are those of all nodes whose demand still counts.
func (b *schedBudget) claims(nodes map[string]*schedNode, now time.Time) iter.Seq[claim] {
	return func(yield func(claim) bool) {
		for node, units := range b.wants {
			if n := nodes[node]; n != nil && n.live(now) && !yield(n.claim(units)) {
				return
			}
		}
	}
}

// idle is how long to wait for a change of the budget's status: as long again as it has not changed, within bounds. A watch tells
// of the change long before.
func (s *Scheduler) idle(b *schedBudget, now time.Time) time.Duration {
	return schedJitter(min(max(now.Sub(b.since), budgetFirst), budgetMost), s.random())
}

// answered learns from the answer to an eviction under a budget.
func (s *Scheduler) answered(t *ticket, a Answer, now time.Time) {
	b, u := t.budget, s.units[t.pod]
	b.flying--
	u.flying = false
	switch a.Verdict {
	case verdictAccepted:
		u.spentAt, b.acceptedAt = now, now
		if t.number > b.closed.raised {
			b.closed.reset(t.number)
			b.limit = min(b.limit+1, s.o.PerBudget)
		}
	case verdictUnknown, verdictReplaced:
		// The server charges the budget before it compares the UID, so that a pod which was replaced has cost a unit too.
		u.spentAt = now
	case verdictBudgetExhausted, verdictBudgetStale, verdictBudgetContended:
		s.refused(t, a, now)
	}
	s.settle(b, now)
}

// refused closes the budget, unless its status has changed since the eviction was sent.
func (s *Scheduler) refused(t *ticket, a Answer, now time.Time) {
	b, retryAfter := t.budget, a.RetryAfter
	changed := s.units[t.pod].version != b.version
	if changed {
		retryAfter = 0
	}
	if !b.closed.raise(now, t.number, s.tickets, retryAfter, s.random()) {
		return
	}
	switch a.Verdict {
	case verdictBudgetStale:
		b.closed.reason = BudgetStale
	case verdictBudgetContended:
		b.closed.reason = BudgetContended
		b.limit = max(1, min(b.limit, b.flying+1)/2)
	default:
		b.closed.reason = BudgetExhausted
	}
	if changed {
		b.closed.reopen()
	}
}

// A schedUnit is one unit of a budget that an eviction takes or may have taken.
type schedUnit struct {
	budget *schedBudget
	pod    PodRef
	flying bool
	sentAt time.Time

	// What the budget's status said of the pod's name when the eviction was sent: an entry can be that of an earlier pod.
	version int
	listed  bool
	entry   metav1.Time

	spentAt time.Time // when it was accepted, or may have been; zero: it was not
	shown   bool      // the status has it
	left    bool      // the pod has been seen terminating or gone,
	leftAt  int       // when this was the version of the budget
}

// A unit that no entry in the status has shown is forgotten by one of these.
const (
	unitConfirm = time.Second      // the pod left, then the budget changed, and a cache was asked so long after the answer
	unitTrust   = 5 * time.Second  // the pod left, the budget had changed, and a cache was asked so long after the answer
	unitForget  = 30 * time.Second // whatever happened
)

// reserve takes one unit of the budget for an eviction.
func (s *Scheduler) reserve(b *schedBudget, node string, pod PodRef, now time.Time) {
	u := s.units[pod]
	if u != nil && u.budget != b { // another budget has come to guard the pod
		delete(u.budget.units, pod)
		u = nil
	}
	if u == nil { // or else one that may have been spent by this pod is not counted twice
		u = &schedUnit{budget: b, pod: pod}
		s.units[pod], b.units[pod] = u, u
	}
	u.flying, u.sentAt, u.version = true, now, b.version
	u.entry, u.listed = b.seen.Status.DisruptedPods[pod.Name]
	b.flying++
	if b.wants[node] > 0 {
		b.wants[node]--
	}
}

// reserved counts the units that the status does not show, without the pod's own.
func (b *schedBudget) reserved(pod PodRef) int {
	units := 0
	for _, u := range b.units {
		if !u.shown && u.pod != pod {
			units++
		}
	}
	return units
}

// look finds the unit in a state of the budget. The server enters the pod's name in the same write that takes the unit. Times are only
// compared for being the same: they are the server's.
func (u *schedUnit) look(seen *policyv1.PodDisruptionBudget) {
	entry, listed := seen.Status.DisruptedPods[u.pod.Name]
	if listed && (!u.listed || !entry.Equal(&u.entry)) {
		u.shown = true
	}
}

// settle forgets the units that the status has in it. The controller drops a pod's entry when it sees the pod terminating, so that the
// entry may never be seen; a later status then counts without the pod. Which one that is can't be read from it, so the rules of
// [unitConfirm] and [unitTrust] wait for one that is surely later than the pod's end, as watches go.
func (s *Scheduler) settle(b *schedBudget, now time.Time) {
	for pod, u := range b.units {
		if !u.flying && (u.spentAt.IsZero() || u.shown || u.over(now)) {
			delete(b.units, pod)
			delete(s.units, pod)
		}
	}
}

func (u *schedUnit) over(now time.Time) bool {
	if now.Sub(u.spentAt) >= unitForget {
		return true
	}
	version, asked := u.budget.version, u.budget.seenAt.Sub(u.spentAt)
	return u.left && version != u.version && (asked >= unitTrust || asked >= unitConfirm && version != u.leftAt)
}
