// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/backoff"
)

const (
	perNode  = 16               // evictions of one node under way at once
	passTime = 10 * time.Second // after it a pass starts nothing more
)

// decide plans this node.
func (p *pass) decide(s Snapshot) {
	plan := Plan(s, p.r.Policy, p.now).Nodes[0]
	p.plan = &plan
	p.askAt(plan.Next)
	p.d.unknownHooks(p.plan)
}

// A candidate is a pod that may be requested to leave in this pass; asks: though its budget allows none.
type candidate struct {
	*PodPlan
	asks bool
}

// An eviction is one request under way.
type eviction struct {
	pod    *corev1.Pod
	state  podState // of the pod when it was sent
	plan   candidate
	ticket *ticket
	sent   time.Time
	answer Answer
	took   time.Duration
}

// evictions sends what the plan lets go, as far as the scheduler lets it, and waits for the answers. A pod that the scheduler holds back
// is tried again whenever an answer has come in or is slow to come, and otherwise stays for the next pass.
func (p *pass) evictions(ctx context.Context) error {
	queue := p.evictable()
	p.want()
	answers := make(chan eviction)
	flying := 0
	until := p.lastStart()
	var after time.Duration
	for {
		if ctx.Err() == nil && p.d.o.Now().Before(until) {
			var started int
			queue, started, after = p.launch(ctx, queue, perNode-flying, answers)
			flying += started
		}
		if flying == 0 {
			break
		}
		if p.settleNext(answers, len(queue) > 0) {
			flying--
		}
	}
	if len(queue) > 0 && !p.d.o.Now().Before(until) {
		after = soon // the others have a time from the scheduler
	}
	if len(queue) > 0 && after > 0 {
		p.ask(after)
	}
	return ctx.Err()
}

// settleNext takes in the next answer. If others wait, it does not wait for a slow one.
func (p *pass) settleNext(answers <-chan eviction, others bool) bool {
	var slow <-chan time.Time
	if others {
		t := time.NewTimer(slowEviction)
		defer t.Stop()
		slow = t.C
	}
	select {
	case e := <-answers:
		p.settleAnswer(e)
		return true
	case <-slow:
		return false
	}
}

// lastStart is when this pass stops to start evictions, however long those before it have taken.
func (p *pass) lastStart() time.Time {
	until := p.d.o.Now().Add(passTime)
	closes, _ := planWindows(p.r.Policy.Windows).at(p.now)
	for _, end := range []time.Time{closes, p.r.Deadline} {
		if !end.IsZero() && end.Before(until) {
			until = end
		}
	}
	return until
}

// evictable are the pods that may go now by a request about the pod itself, and then those that are asked all the same.
func (p *pass) evictable() []candidate {
	var queue, asked []candidate
	for i := range p.plan.Pods {
		switch pod := &p.plan.Pods[i]; {
		case pod.asksAnyway():
			asked = append(asked, candidate{pod, true})
		case pod.Action == Evict && pod.Step != StepOutOfService:
			queue = append(queue, candidate{pod, false})
		}
	}
	return append(queue, asked...)
}

// want tells the scheduler what this node needs: also what its budgets do not allow yet, so that the next unit goes to the node whose turn
// it is, and not to the one that happens to look first.
func (p *pass) want() {
	d := demand{remaining: p.plan.Counts.Remaining, since: p.st.Started, budgets: map[types.NamespacedName]int{}}
	for i := range p.plan.Pods {
		pod := &p.plan.Pods[i]
		if pod.asksAnyway() {
			d.asks++
		}
		if pod.Action != Evict && (pod.Action != Wait || pod.Reason != BudgetExhausted) {
			continue
		}
		if b := budgetFor(pod); b.Name != "" {
			d.budgets[b]++
		}
	}
	p.d.scheduler.want(p.node.Name, d)
}

// budgetFor is the budget that the server will ask, or the zero name.
func budgetFor(pod *PodPlan) types.NamespacedName {
	if !pod.Guarded || len(pod.Budgets) != 1 || pod.Step == StepDelete || pod.Step == StepOutOfService {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Budgets[0]}
}

// launch starts up to n evictions from the queue, and returns what is left of it, and when the scheduler may have something for that. A budget that has
// refused one pod is not asked about the next.
func (p *pass) launch(
	ctx context.Context, queue []candidate, n int, answers chan<- eviction,
) (rest []candidate, started int, after time.Duration) {
	refusals := map[types.NamespacedName]*refusal{}
	for _, plan := range queue {
		if started >= n {
			rest = append(rest, plan)
			continue
		}
		pod := presentPod(p.d.o.Cache, p.node.Name, plan.PodPlan)
		if pod == nil {
			continue
		}
		t, refused := p.requestTicket(plan, refusals)
		if refused != nil {
			after = sooner(after, refused.after)
			rest = append(rest, plan)
			continue
		}
		started++
		state := stateOf(pod, plan.Budgets, p.d.o.Cache.Budgets(pod.Namespace))
		go p.evict(ctx, eviction{pod: pod, state: state, plan: plan, ticket: t}, answers)
	}
	return rest, started, after
}

// requestTicket asks the scheduler for the right to send one eviction. What it refuses becomes the pod's reason, but
// for a pod that is only asked: that one has a reason of its own.
func (p *pass) requestTicket(plan candidate, refusals map[types.NamespacedName]*refusal) (*ticket, *refusal) {
	if plan.asks {
		return p.d.scheduler.takeAsk(p.node.Name, plan.PodRef)
	}
	budget := budgetFor(plan.PodPlan)
	t, refused := (*ticket)(nil), refusals[budget]
	if refused == nil {
		t, refused = p.d.scheduler.take(p.node.Name, plan.PodRef, budget)
	}
	if refused == nil {
		return t, nil
	}
	if budget.Name != "" { // what stands in the way of one unguarded pod may not stand in that of another
		refusals[budget] = refused
	}
	hold(plan.PodPlan, refused)
	return nil, refused
}

// presentPod returns the planned pod as the cache has it now, or nil if it is not that pod, not on the node, or leaving
// already with a grace period that the plan does not shorten.
func presentPod(cache Cache, node string, plan *PodPlan) *corev1.Pod {
	pod := cache.Pod(plan.Namespace, plan.Name)
	if pod == nil || pod.UID != plan.UID || pod.Spec.NodeName != node {
		return nil
	}
	if had := pod.DeletionGracePeriodSeconds; pod.DeletionTimestamp != nil &&
		(plan.Step != StepDelete || plan.GracePeriodSeconds == nil || had == nil || *plan.GracePeriodSeconds >= *had) {
		return nil
	}
	return pod
}

// evict makes one request, and passes its answer on.
func (p *pass) evict(ctx context.Context, e eviction, answers chan<- eviction) {
	e.sent = p.d.o.Now()
	e.answer = p.send(ctx, e.plan.PodPlan)
	if e.answer.Verdict == verdictMultipleBudgets && len(e.plan.Budgets) < 2 {
		e.answer.Verdict = verdictAdmissionDenied // a webhook that denies with code 500 reads like it
	}
	e.took = p.d.o.Now().Sub(e.sent)
	answers <- e
}

// shared reports whether the answer is about more than the pod, so that the scheduler alone knows until when it counts: a budget is
// asked again when it changes, a server when it has recovered.
func (e eviction) shared() bool {
	switch e.answer.Verdict {
	case verdictOverloaded:
		return true
	case verdictBudgetExhausted, verdictBudgetStale, verdictBudgetContended:
		return e.ticket.budget != nil
	}
	return false
}

// hold turns a pod that could go into one that waits for the scheduler.
func hold(plan *PodPlan, r *refusal) {
	plan.Action, plan.Reason, plan.Message = Wait, r.reason, r.message
}

// send makes the request. It is not cut short by ctx: an eviction that the server may still carry out has to be waited for, so that
// nothing is evicted after a cancelled pass has returned. The client's own deadline bounds it.
func (p *pass) send(ctx context.Context, plan *PodPlan) Answer {
	ctx = context.WithoutCancel(ctx)
	if plan.Step == StepDelete {
		return Classify(p.d.o.Client.Delete(ctx, plan.PodRef, plan.GracePeriodSeconds))
	}
	return Classify(p.d.o.Client.Evict(ctx, plan.PodRef, plan.GracePeriodSeconds))
}

// settleAnswer takes in one answer.
func (p *pass) settleAnswer(e eviction) {
	e.ticket.done(e.answer)
	if f := p.d.o.Metrics.Eviction; f != nil {
		f(e.answer.Verdict, e.answer.Code, e.took)
	}
	if e.pod.DeletionTimestamp != nil {
		settleShortened(p, e)
		return
	}
	if e.shared() {
		p.memory.noteRefusal(e.plan.UID, e.answer, p.now)
	} else {
		p.memory.learn(e.pod, e.plan.PodRef, e.plan.Step, e.answer, e.sent, p.now)
	}
	foretold := e.plan.asks && e.answer.ofBudget() // what the plan has said of the budget is true
	if last, ok := p.memory.attempts[e.plan.UID]; ok {
		last.sent = e.state
		if foretold {
			// The pass may have begun long before the request was sent.
			last.until = p.d.o.Now().Add(backoff.After(last.tries-1, askFirst, askLast))
		}
		p.memory.attempts[e.plan.UID] = last
	}
	if foretold {
		e.plan.Step, e.plan.GracePeriodSeconds = "", nil
		p.askAt(p.memory.attempts[e.plan.UID].until)
		return
	}
	action, reason, text := e.answer.meaning()
	e.plan.Action, e.plan.Reason, e.plan.Message = action, reason, cmp.Or(e.answer.Message, text)
	switch e.answer.Verdict {
	case verdictAccepted:
		e.plan.Message = "the server has accepted that it leaves"
		if e.plan.Step != StepEvict {
			p.event(corev1.EventTypeWarning, "Forced", fmt.Sprintf("pod %s is deleted past its budget", e.plan.PodRef))
		}
	case verdictAdmissionDenied, verdictForbidden, verdictRejected, verdictMultipleBudgets:
		p.ask(fallback(p.memory.attempts[e.plan.UID].tries - 1))
	case verdictGone, verdictReplaced:
		p.ask(soon)
	default:
		p.ask(max(e.answer.RetryAfter, soon))
	}
}

// settleShortened takes in the answer to a deletion of a pod that was ending already: it is no eviction, and past no
// budget.
func settleShortened(p *pass, e eviction) {
	grace := *e.plan.GracePeriodSeconds
	e.plan.Action, e.plan.Reason, e.plan.Step, e.plan.GracePeriodSeconds = Wait, Terminating, "", nil
	switch e.answer.Verdict {
	case verdictAccepted:
		e.plan.Message = fmt.Sprintf("its grace period is %d s now", grace)
		p.memory.attempts[e.plan.UID] = attempt{shortened: p.now}
		p.event(corev1.EventTypeWarning, "Shortened", fmt.Sprintf("pod %s, which is ending, has a grace period of %d s in "+
			"place of %d s", e.plan.PodRef, grace, *e.pod.DeletionGracePeriodSeconds))
	case verdictGone, verdictReplaced:
		p.ask(soon)
	default:
		_, _, text := e.answer.meaning()
		e.plan.Message = "its grace period was not shortened: " + cmp.Or(e.answer.Message, text)
		p.memory.noteRefusal(e.plan.UID, e.answer, p.now)
		last := p.memory.attempts[e.plan.UID]
		last.until, last.tries = p.now.Add(max(e.answer.RetryAfter, fallback(last.tries))), last.tries+1
		p.memory.attempts[e.plan.UID] = last
		p.askAt(last.until)
	}
}
