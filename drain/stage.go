// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// drain is the pass of mode Drain: begin, then as far as the plan and the scheduler let it.
func (p *pass) drain(ctx context.Context) error {
	if !p.begun() && p.memory.doubt.Load() {
		if err := p.reread(ctx); err != nil {
			return err
		}
	}
	if mine := p.mark.of(p.r.Holder); p.begun() && !mine.Drained.IsZero() {
		p.latched(*mine)
		return nil
	}
	if !p.begun() {
		if ok, err := p.begin(ctx); !ok {
			return err
		}
	}
	p.st.Started = p.mark.of(p.r.Holder).Since
	if ok, err := p.publish(ctx); !ok {
		return err
	}
	return p.goOn(ctx)
}

// begun reports whether the node is cordoned for this drain.
func (p *pass) begun() bool {
	mine := p.mark.of(p.r.Holder)
	return mine != nil && mine.Mode == Drain && mine.Maintenance == p.r.Maintenance && mine.Released.IsZero()
}

// begin cordons the node for this drain, if it may. It reports whether it has.
func (p *pass) begin(ctx context.Context) (bool, error) {
	if stop, err := p.mayBegin(); err != nil {
		return false, err
	} else if stop { // what a drain has left that gave the node back for a while
		if mine := p.mark.of(p.r.Holder); mine != nil && mine.Recalls {
			p.namedHooks(ctx, *mine)
		}
		hooks := p.recall(ctx)
		if hooks != nil {
			p.ask(firstFallback)
		}
		if p.st.Reason == WindowClosed && isPlanned(p) {
			_, err := publishPlanned(ctx, p, WindowClosed, p.st.Message)
			return false, errors.Join(hooks, err)
		}
		_, err := p.unpublish(ctx)
		return false, errors.Join(hooks, err)
	}
	ok, err := p.enter(ctx, holder{Mode: Drain})
	if !ok {
		p.st.Phase = Pending
	}
	return ok, err
}

// goOn is the pass over a node that is cordoned for this drain.
func (p *pass) goOn(ctx context.Context) error {
	p.st.Phase = Draining
	if err := p.d.checkCache(); err != nil {
		return err
	}
	for _, left := range p.memory.look(p.d.o.Cache.Pods(p.node.Name), !p.node.Spec.Unschedulable) {
		p.d.scheduler.left(left)
	}
	snapshot, err := p.snapshot(ctx)
	if err != nil {
		return err
	}
	stopped, err := p.stopped(ctx)
	if err != nil {
		return err
	}
	p.decide(snapshot)
	if stopped {
		p.d.scheduler.forget(p.r.Node) // what it does not ask for is for others
	} else if err := p.act(ctx, snapshot); err != nil {
		return err
	}
	withdrawn := withdrawFound(ctx, p, stopped)
	return cmp.Or(p.finish(ctx, snapshot, stopped), p.proof, withdrawn)
}

// act asks responders, and then evicts what the plan lets go.
func (p *pass) act(ctx context.Context, s Snapshot) error {
	for p.askHooks(ctx) {
		s.Nodes[0].Hooks = p.memory.hookStates()
		p.decide(s)
	}
	return p.evictions(ctx)
}

// latched reports the result that is on the node.
func (p *pass) latched(h holder) {
	p.d.scheduler.forget(p.r.Node)
	p.st.Phase, p.st.Outcome, p.st.Started, p.st.Finished = Drained, OutcomeDrained, h.Since, h.Drained
	p.st.Counts.Evicted = len(p.memory.evicted)
	if h.Forced {
		p.st.Outcome = OutcomeForced
	}
}

// wouldBegin is mayBegin of a drain that is not asked for yet.
func (p *pass) wouldBegin() bool {
	st, after := p.st, p.after
	stay, err := p.mayBegin()
	p.st, p.after = st, after
	return !stay && err == nil
}

// mayBegin asks everything that has to be so before the first write. It reports whether the drain has to stay off the node.
func (p *pass) mayBegin() (bool, error) {
	p.st.Phase = Pending
	if p.pastDeadline() {
		return true, nil
	}
	if node, why := frozenBy(p.d.registry.nodes(p.d.o.Cache), p.r.Holder); node != "" {
		p.st.Reason, p.st.Message = Frozen, frozenMessage(node, why)
		p.ask(firstFallback)
		return true, nil
	}
	if open, next := planWindows(p.r.Policy.Windows).state(p.now); !open {
		p.st.Reason, p.st.Message = WindowClosed, windowMessage(next)
		p.askAt(next)
		return true, nil
	}
	snapshot, err := p.d.snapshotOf(p.r.Policy, p.view(nil))
	if err != nil {
		return true, err
	}
	return p.preflight(Preflight(snapshot, p.r.Policy, p.now)), nil
}

// preflight takes in what was found. What would lose data ends the drain before it begins; an unhealthy pod puts it off.
func (p *pass) preflight(found []Finding) bool {
	if len(found) == 0 {
		return false
	}
	p.st.Reason, p.st.Phase, p.st.Outcome = reasonDataLoss, Failed, OutcomeFailed
	if !slices.ContainsFunc(found, func(f Finding) bool { return f.Reason != reasonPodUnhealthy }) {
		p.st.Reason, p.st.Phase, p.st.Outcome = reasonPodUnhealthy, Pending, ""
		p.ask(firstFallback)
	}
	for _, f := range found {
		p.st.Blockers = append(p.st.Blockers, Blocker{PodRef: f.PodRef, Action: Block, Reason: f.Reason, Message: f.Message,
			Since: p.since(f.UID, f.Reason)})
	}
	p.st.Message = fmt.Sprintf("pod %s: %s", found[0].PodRef, found[0].Message)
	if n := len(found) - 1; n > 0 {
		p.st.Message += fmt.Sprintf(" (and %d more)", n)
	}
	return true
}

// stopped reports whether no eviction may start in this pass though the drain has begun.
func (p *pass) stopped(ctx context.Context) (bool, error) {
	if !p.node.Spec.Unschedulable {
		if err := p.uncordoned(ctx); err != nil || p.st.Phase != Paused {
			return true, err
		}
		p.ask(lastFallback)
		p.pastDeadline()
		return true, nil
	}
	if node, why := frozenBy(p.d.registry.nodes(p.d.o.Cache), p.r.Holder); node != "" {
		p.st.Phase, p.st.Reason, p.st.Message = Paused, Frozen, frozenMessage(node, why)
		p.ask(firstFallback)
		p.pastDeadline()
		return true, nil
	}
	if p.pastDeadline() {
		return true, nil
	}
	return p.outsideWindow(ctx)
}

// outsideWindow pauses the drain while no window is open, and gives the cordon back meanwhile if the policy says so.
func (p *pass) outsideWindow(ctx context.Context) (bool, error) {
	open, next := planWindows(p.r.Policy.Windows).state(p.now)
	if open {
		return false, nil
	}
	p.st.Phase, p.st.Reason, p.st.Message = Paused, WindowClosed, windowMessage(next)
	p.askAt(next)
	if p.r.Policy.OutsideWindow != UndoCordon {
		return true, nil
	}
	p.st.Phase = Pending
	p.memory.emptySince = time.Time{}
	mine := p.mark.of(p.r.Holder)
	p.namedHooks(ctx, *mine)
	if ok, err := openNode(ctx, p, p.recalling(*mine)); !ok {
		return true, err
	}
	hooks := p.recall(ctx)
	if isPlanned(p) {
		_, err := publishPlanned(ctx, p, WindowClosed, p.st.Message)
		return true, errors.Join(hooks, err)
	}
	_, err := p.unpublish(ctx)
	return true, errors.Join(hooks, err)
}

// pastDeadline reports the deadline where it is over, whatever else the drain waits for, and asks for a pass at its time where it is not.
func (p *pass) pastDeadline() bool {
	if p.r.Deadline.IsZero() || p.now.Before(p.r.Deadline) {
		p.askAt(p.r.Deadline)
		return false
	}
	p.st.Outcome, p.st.Reason = OutcomeBlocked, reasonDeadlinePassed
	p.st.Message = fmt.Sprintf("the deadline %s is over: no further eviction starts", p.r.Deadline.UTC().Format(time.RFC3339))
	return true
}

func frozenMessage(node, why string) string {
	return fmt.Sprintf("frozen since node %q came back: %s; nothing starts until Resume", node, why)
}

func windowMessage(next time.Time) string {
	if next.IsZero() {
		return "every window is over"
	}
	return fmt.Sprintf("the next window opens at %s", next.UTC().Format(time.RFC3339))
}

// view is the node as Plan sees it.
func (p *pass) view(hooks map[types.UID]HookState) NodeView {
	return NodeView{Node: p.node, Pods: p.d.o.Cache.Pods(p.node.Name), Started: p.st.Started,
		Bounces: p.memory.returns.most, Hooks: hooks, Attempts: p.memory.answers(p.now)}
}

// snapshot is what this pass decides on.
func (p *pass) snapshot(ctx context.Context) (Snapshot, error) {
	v := p.view(p.memory.hookStates())
	if err := findPodResponders(ctx, p.d, p.r.Policy, &v); err != nil {
		return Snapshot{}, err
	}
	v.PoweredOff = p.poweredOff(ctx)
	v.Asked, v.Acted = p.memory.recordChanges(v.Pods, p.d.o.Cache.Budgets)
	v.Attempts, v.Shortened = p.memory.answers(p.now), map[types.UID]time.Time{}
	for uid, a := range p.memory.attempts {
		if !a.shortened.IsZero() {
			v.Shortened[uid] = a.shortened
		}
	}
	s, err := p.d.snapshotOf(p.r.Policy, v)
	p.memory.users(s)
	return s, err
}

// poweredOff asks for the proof that the ladder needs: when it has come to that step, or when the node is unreachable, so that the step can
// be announced. No answer is no proof, and stops nothing else.
func (p *pass) poweredOff(ctx context.Context) bool {
	if p.d.o.PoweredOff == nil {
		return false
	}
	for _, e := range p.r.Policy.Escalation {
		due := !p.now.Before(p.st.Started.Add(e.After))
		if e.Step != StepOutOfService || !due && !nodeUnreachable(p.node) {
			continue
		}
		node := p.node // the call may go on when the pass does not wait for it any more
		off, err := p.d.registry.ask(ctx, question{"power", p.r.Holder, node.UID}, func(ctx context.Context) (bool, error) {
			return p.d.o.PoweredOff(ctx, node)
		})
		if err != nil && due {
			p.proof = fmt.Errorf("asking whether node %q is off: %w", p.node.Name, err)
		}
		return off && err == nil
	}
	return false
}

// A namespaceCache is a [Cache] that also knows the pods of a namespace, those without a node included.
type namespaceCache interface {
	PodsIn(namespace string) []*corev1.Pod
}

// snapshotOf completes views with budgets, owners and volumes from the cache. A read that has failed meanwhile is an error.
func (d *Drainer) snapshotOf(policy Policy, views ...NodeView) (Snapshot, error) {
	s := Snapshot{Nodes: views, Fits: d.o.Fits}
	if cache, ok := d.o.Cache.(namespaceCache); ok {
		s.PodsIn = cache.PodsIn
	}
	namespaces := map[string]bool{}
	for _, v := range views {
		for _, pod := range v.Pods {
			namespaces[pod.Namespace] = true
		}
	}
	for _, ns := range sortedKeys(namespaces) {
		s.Budgets = append(s.Budgets, d.o.Cache.Budgets(ns)...)
	}
	d.scheduler.observe(s.Budgets)
	s.Spent = d.scheduler.spent()
	s.Dips, s.Stuck = d.scheduler.budgetTimes(s.Budgets)
	d.owners(&s)
	if err := readNamespaces(d, &s, &policy, namespaces); err != nil {
		return s, err
	}
	if err := keepsAnnotations(d, &policy); err != nil {
		return s, err
	}
	if err := d.volumes(&s, policy); err != nil {
		return s, err
	}
	return s, d.checkCache()
}

// owners notes which of the DaemonSets that the pods name exist.
func (d *Drainer) owners(s *Snapshot) {
	cache, ok := d.o.Cache.(OwnerCache)
	if !ok {
		return
	}
	s.DaemonSets = map[types.UID]bool{}
	for _, v := range s.Nodes {
		for _, pod := range v.Pods {
			for _, o := range pod.OwnerReferences {
				if o.Kind != "DaemonSet" {
					continue
				}
				if uid, there := cache.DaemonSet(pod.Namespace, o.Name); there {
					s.DaemonSets[uid] = true
				}
			}
		}
	}
}

// volumes resolves claims and attachments where the policy looks at them.
func (d *Drainer) volumes(s *Snapshot, policy Policy) error {
	asks := "Policy.Volumes and Policy.Removal need"
	if i := slices.IndexFunc(policy.Rules, func(r Rule) bool {
		return len(r.StorageClasses) > 0 || slices.Contains(r.PodMatch.Volumes, volumeLocal)
	}); i >= 0 {
		asks = fmt.Sprintf("Policy.Rules[%d] asks for volumes of claims: it needs", i)
	} else if !policy.Volumes && policy.Removal == nil {
		return nil
	}
	cache, ok := d.o.Cache.(VolumeCache)
	if !ok {
		return fmt.Errorf("%s a cache that knows volumes (VolumeCache), and %T does not: %w", asks, d.o.Cache, ErrOption)
	}
	s.Claims, s.Volumes = map[types.NamespacedName]*corev1.PersistentVolumeClaim{}, map[string]*corev1.PersistentVolume{}
	for i := range s.Nodes {
		v := &s.Nodes[i]
		v.Attachments = cache.Attachments(v.Node.Name)
		for _, pod := range v.Pods {
			for _, name := range claimsOf(pod) {
				claim := cache.Claim(pod.Namespace, name)
				if claim == nil {
					continue
				}
				s.Claims[types.NamespacedName{Namespace: pod.Namespace, Name: name}] = claim
				if pv := cache.Volume(claim.Spec.VolumeName); pv != nil {
					s.Volumes[pv.Name] = pv
				}
			}
		}
	}
	return nil
}

// claimsOf names the claims that a pod mounts, ephemeral ones included.
func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, pod.Name+"-"+v.Name)
		}
	}
	return names
}
