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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// defaultSettle is how long a node is watched where pods may still be on their way to it.
	defaultSettle = 5 * time.Second
	// schedulerLag is how long after a cordon a scheduler may still choose the node for a pod: the time that its watch
	// of nodes takes to bring the cordon.
	schedulerLag = 500 * time.Millisecond
)

// A lateWatch is the time in which a cordoned node is watched for pods that come late.
//
// An API server binds a pod to a cordoned node. Only a scheduler keeps pods away, and in two cases it does not: it
// has chosen the node before the cordon and its binding is still under way, for as long as a volume takes to be
// provisioned; or its watch has not brought the cordon yet. So the time counts from the cordon, not from when the
// node became empty: a drain whose pods took longer to end has nothing left to wait for. A pod that came late shows
// that the race is real in this cluster, and the time starts again with it.
//
// Less than the whole time is enough where the [Cache] knows the pods that are bound to no node. A pod whose binding
// is under way is one of them. If there is none, once a scheduler has had schedulerLag to see the cordon, no pod is
// on its way to the node: one that was bound meanwhile is in the consistent read that follows. The read alone is not
// enough while there is such a pod, as it may be bound after the read; then the whole time counts. Of a scheduler
// whose watch is further behind, no time is safe.
type lateWatch struct {
	cordon time.Time // the time in the mark, by which a cordon is known from the one before
	from   time.Time // when this process saw the cordon, or the last pod that came late, by its own clock
	late   bool      // a pod has come late
}

// An unboundCache is a [Cache] that also knows the pods that are bound to no node.
type unboundCache interface {
	// UnboundPods returns them. If known is false, the cache does not watch them.
	UnboundPods() (pods []*corev1.Pod, known bool)
}

// startWatch begins the watch with the first pass over a cordon.
func startWatch(p *pass) {
	mine := p.mark.of(p.r.Holder)
	if mine == nil || !p.node.Spec.Unschedulable {
		p.memory.watch = lateWatch{}
		return
	}
	if w := &p.memory.watch; w.from.IsZero() || !w.cordon.Equal(mine.Since) {
		*w = lateWatch{cordon: mine.Since, from: p.d.o.Now()} // this pass may have written the cordon after p.now
	}
}

// recordLatecomer starts the watch again for a pod that came to an empty node.
func recordLatecomer(p *pass) {
	p.memory.watch.from, p.memory.watch.late = p.now, true
	p.memory.emptySince = time.Time{}
}

// settleWait is how long an empty node is still to be watched. Zero or less means that the consistent read may follow.
func settleWait(p *pass) time.Duration {
	w := p.memory.watch
	whole := w.from.Add(p.r.Policy.settle()).Sub(p.now)
	if p.r.Policy.Settle != nil || w.late || whole <= 0 {
		return whole
	}
	cache, ok := p.d.o.Cache.(unboundCache)
	if !ok {
		return whole
	}
	pods, known := cache.UnboundPods()
	if !known {
		return whole
	}
	if lag := w.from.Add(schedulerLag).Sub(p.now); lag > 0 {
		return lag
	}
	if slices.ContainsFunc(pods, mayBeBound) {
		return min(whole, soon)
	}
	return 0
}

// mayBeBound reports whether a scheduler may be about to bind a pod that is bound to no node.
func mayBeBound(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || podFinished(pod) {
		return false
	}
	return len(pod.Spec.SchedulingGates) == 0 // the condition of that name stays for a while after the last gate
}

// finish reports what is left on the node, and where nothing is, goes through the stages at the end.
func (p *pass) finish(ctx context.Context, s Snapshot, stopped bool) error {
	if err := p.outOfService(ctx); err != nil {
		return err
	}
	p.blockers()
	p.interests()
	startWatch(p)
	if p.plan.Counts.Remaining > 0 {
		if !p.memory.emptySince.IsZero() {
			recordLatecomer(p)
		}
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

// settle waits until no pod can be on its way to the node and its volumes are detached, confirms that with the
// server, and latches.
func (p *pass) settle(ctx context.Context, s Snapshot) error {
	if p.memory.emptySince.IsZero() {
		p.memory.emptySince = p.now
	}
	p.st.Phase, p.st.Outcome = Settling, ""
	if wait := settleWait(p); wait > 0 {
		p.st.Reason = reasonSettleWindow
		p.st.Message = fmt.Sprintf("empty; watched for pods that a scheduler bound late, for at most %s", p.r.Policy.settle())
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
	recordLatecomer(p)
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
	if p.d.o.NodeConditions && !p.memory.told.refused {
		done := p.st
		done.Phase = Drained
		c.conditions = conditionsOn(p.node, done, p.now)
	}
	ok, err := p.write(ctx, c)
	if c.conditions != nil && apierrors.IsForbidden(err) {
		noteRefused(p, err)
		c.conditions = nil
		ok, err = p.write(ctx, c)
	}
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
	m := &p.memory.idle
	if summary := p.st.summary(); summary != m.summary {
		m.summary, m.count, m.at = summary, 0, p.now
	} else if p.now.Sub(m.at) >= fallback(m.count)*9/10 { // passes that something else has caused do not count
		m.count, m.at = m.count+1, p.now
	}
	p.ask(jitter(fallback(m.count)))
}
