// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const defaultSettle = 5 * time.Second

// finish reports what is left on the node, and where nothing is, goes through the stages at the end.
func (p *pass) finish(ctx context.Context, s Snapshot, stopped bool) error {
	if err := p.outOfService(ctx); err != nil {
		return err
	}
	p.blockers()
	p.interests()
	if p.plan.Counts.Remaining > 0 {
		p.memory.emptySince = time.Time{}
		p.askAt(p.memory.nextTry(p.now))
		p.awaitSpent(s)
		p.again()
		return nil
	}
	if settles := p.st.Reason == WindowClosed || p.st.Reason == reasonDeadlinePassed && p.st.Phase != Paused; stopped && (!settles || p.mark.of(p.r.Holder) == nil) {
		return nil // a node that is open, or has been given back, is not drained
	}
	return p.settle(ctx, s)
}

// awaitSpent asks for a pass soon where a pod waits for a unit of its budget that an eviction of this process took, and that no status
// was seen to show. That such a unit is over is a matter of time, of which no watch tells.
func (p *pass) awaitSpent(s Snapshot) {
	for i := range p.plan.Pods {
		pod := &p.plan.Pods[i]
		if pod.Action != Wait || !pod.Guarded || len(pod.Budgets) != 1 {
			continue
		}
		if s.Spent[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Budgets[0]}] > 0 {
			p.ask(unitConfirm)
			return
		}
	}
}

// settle waits until the node has been empty for the settle time and its volumes are detached, confirms that with the server, and latches.
func (p *pass) settle(ctx context.Context, s Snapshot) error {
	if p.memory.emptySince.IsZero() {
		p.memory.emptySince = p.now
	}
	p.st.Phase, p.st.Outcome = Settling, ""
	if wait := p.memory.emptySince.Add(p.r.Policy.settle()).Sub(p.now); wait > 0 {
		p.st.Reason, p.st.Message = reasonSettleWindow, fmt.Sprintf("empty; watched for latecomers for %s", p.r.Policy.settle())
		p.ask(wait)
		return nil
	}
	if p.detaching() {
		return nil
	}
	confirmed, err := p.confirm(ctx, s)
	if err != nil || !confirmed {
		return err
	}
	return p.latch(ctx)
}

// settle is the settle time, with its default.
func (p Policy) settle() time.Duration {
	if p.Settle == nil {
		return defaultSettle
	}
	return *p.Settle
}

// detaching reports whether volumes of pods that have left are still attached and still waited for.
func (p *pass) detaching() bool {
	p.st.Attached = p.plan.Attached
	for i := range p.st.Attached {
		if a := &p.st.Attached[i]; len(a.Pods) == 0 {
			a.Pods = p.memory.volumes[a.Volume]
		}
	}
	if !p.r.Policy.Volumes || len(p.st.Attached) == 0 || nodeUnreachable(p.node) {
		return false
	}
	if d := p.r.Policy.VolumeDeadline; d > 0 {
		end := p.memory.emptySince.Add(d)
		if !p.now.Before(end) {
			return false
		}
		p.askAt(end)
	}
	names := make([]string, 0, len(p.st.Attached))
	for _, a := range p.st.Attached {
		names = append(names, a.Volume)
	}
	p.st.Reason, p.st.Message = reasonVolumeAttached, "still attached: "+strings.Join(names, ", ")
	p.again()
	return true
}

// confirm asks the server itself whether the node is empty: the cache may be behind, and this is the one claim that may not be wrong.
func (p *pass) confirm(ctx context.Context, s Snapshot) (bool, error) {
	pods, err := p.d.o.Client.ListPods(ctx, p.node.Name)
	if err != nil {
		return false, fmt.Errorf("confirming that node %q is empty: %w", p.node.Name, err)
	}
	s.Nodes = slices.Clone(s.Nodes)
	s.Nodes[0].Pods = pods
	found, err := p.d.snapshotOf(p.r.Policy, s.Nodes[0])
	if err != nil {
		return false, err
	}
	plan := Plan(found, p.r.Policy, p.now).Nodes[0]
	if plan.Counts.Remaining == 0 {
		return true, nil
	}
	p.memory.emptySince = time.Time{}
	p.st.Phase, p.st.Reason = Draining, ""
	p.st.Message = fmt.Sprintf("the server has %d pods more on the node than the cache shows", plan.Counts.Remaining)
	p.ask(soon)
	return false, nil
}

// latch records the result on the node, for this maintenance, or just reports it.
func (p *pass) latch(ctx context.Context) error {
	mine := *p.mark.of(p.r.Holder)
	mine.Drained = p.now
	mine.Forced = mine.Forced || mine.OutOfService || len(p.memory.forced) > 0
	if p.r.unlatched && !p.d.o.NodeConditions {
		p.st.Reason, p.st.Message = reasonNone, ""
		p.latched(mine)
		return nil
	}
	c := nodeChange{mark: p.mark.with(mine)}
	if p.d.o.NodeConditions {
		done := p.st
		done.Phase = Drained
		c.conditions = conditionsOn(p.node, done, p.now)
	}
	ok, err := p.write(ctx, c)
	if ok {
		p.st.Reason, p.st.Message = reasonNone, ""
		p.latched(mine)
	}
	return err
}

// outOfService taints the node where the ladder has come to that and the machine is proven to be off.
func (p *pass) outOfService(ctx context.Context) error {
	wanted := slices.ContainsFunc(p.plan.Pods, func(pod PodPlan) bool { return pod.Action == Evict && pod.Step == StepOutOfService })
	mine := p.mark.of(p.r.Holder)
	if !wanted || p.st.Phase != Draining || mine == nil || mine.OutOfService || p.st.Outcome == OutcomeBlocked {
		return nil
	}
	tainted := slices.ContainsFunc(p.node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == outOfServiceTaint })
	if tainted {
		return nil
	}
	ok, err := p.write(ctx, outOfServiceBy(p.node, p.mark, *mine))
	if ok {
		p.event(corev1.EventTypeWarning, "OutOfService", "the machine is proven to be off: pods and volumes are forced off the node")
	}
	return err
}

// again asks for a pass though nothing is known to come: the longer nothing changes, the later.
func (p *pass) again() {
	m := p.memory
	if summary := p.st.summary(); summary != m.summary {
		m.summary, m.quiet, m.quietAt = summary, 0, p.now
	} else if p.now.Sub(m.quietAt) >= fallback(m.quiet)*9/10 { // passes that something else has caused do not count
		m.quiet, m.quietAt = m.quiet+1, p.now
	}
	p.ask(jitter(fallback(m.quiet)))
}
