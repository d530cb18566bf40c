// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	hookEvery = 10 * time.Second // how often a responder is asked how it goes
	// recallTime bounds how long requests are taken back in one pass: a responder that hangs leaves time for what else the pass has to do.
	recallTime = 5 * time.Second
)

// A hookMemory is what is known of a pod's responders, and how to take the request back.
type hookMemory struct {
	state   HookState
	beat    string
	request HookRequest
	asked   time.Time
}

func (m *memory) hookStates() map[types.UID]HookState {
	out := make(map[types.UID]HookState, len(m.hooks))
	for uid, h := range m.hooks {
		out[uid] = h.state
	}
	return out
}

// unknownHooks blocks the pods of a plan whose turn has come to a responder that is not there: what the pod wants is not known to be done
// by an eviction.
func (d *Drainer) unknownHooks(plan *NodePlan) {
	for i := range plan.Pods {
		if pod := &plan.Pods[i]; pod.Action == Hook && d.o.Responders[pod.Hook] == nil {
			pod.Action, pod.Reason, pod.Message = Block, InvalidBehavior, fmt.Sprintf("there is no responder %q", pod.Hook)
			plan.Counts.Waiting--
			plan.Counts.Blocked++
		}
	}
}

// askHooks asks the responders that the plan names, those that are due, the longest unasked first. It reports whether anything was said.
func (p *pass) askHooks(ctx context.Context) bool {
	var due []*PodPlan
	for i := range p.plan.Pods {
		pod := &p.plan.Pods[i]
		if pod.Action != Hook {
			continue
		}
		p.ask(hookEvery)
		if h := p.memory.hooks[pod.UID]; h.request.Responder != pod.Hook || !p.now.Before(h.asked.Add(hookEvery)) {
			due = append(due, pod)
		}
	}
	slices.SortStableFunc(due, func(a, b *PodPlan) int { return p.memory.hooks[a.UID].asked.Compare(p.memory.hooks[b.UID].asked) })
	said := false
	for _, pod := range due {
		if ctx.Err() != nil || p.d.o.Now().Sub(p.now) >= passTime {
			return false
		}
		p.memory.hooks[pod.UID] = p.askHook(ctx, pod, p.memory.hooks[pod.UID])
		said = true
	}
	return said
}

// askHook asks one responder. A responder that fails gives no sign of life, and is given up like one that is silent.
func (p *pass) askHook(ctx context.Context, pod *PodPlan, h hookMemory) hookMemory {
	if h.request.Responder != pod.Hook {
		h = hookMemory{state: HookState{Responder: pod.Hook, Progress: HookAsked, LastBeat: p.now, Since: p.now}}
	}
	h.request = HookRequest{Pod: pod.PodRef, Node: p.node.Name, Holder: p.r.Holder, Maintenance: p.r.Maintenance, Responder: pod.Hook}
	h.asked = p.now
	ctx, cancel := context.WithTimeout(ctx, hookEvery)
	defer cancel()
	answer, err := p.d.o.Responders[pod.Hook].Respond(ctx, h.request)
	if err != nil {
		h.state.Message = fmt.Sprintf("asking responder %q: %v", pod.Hook, err)
		return h
	}
	if answer.Beat != h.beat || answer.Progress != h.state.Progress {
		h.state.LastBeat, h.beat = p.now, answer.Beat
	}
	if !answer.Since.IsZero() && answer.Since.Before(h.state.Since) {
		h.state.Since = answer.Since
	}
	if _, finds := p.d.o.Responders[pod.Hook].(PodResponder); finds && answer.Progress == HookDeclined {
		p.memory.takeBack(h.request) // the drain goes on by itself
	}
	if answer.Progress == HookDeclined && h.state.Progress != HookDeclined {
		p.event(corev1.EventTypeWarning, "ResponderDeclined",
			fmt.Sprintf("pod %s leaves without responder %q: %s", pod.PodRef, pod.Hook, answer.Message))
	}
	h.state.Progress, h.state.Message = answer.Progress, answer.Message
	return h
}

// findResponders asks each PodResponder which of the pods wait for it. Of two that find a pod, the first by name
// counts.
func findResponders(
	ctx context.Context, known map[string]Responder, node string, pods []*corev1.Pod,
) (map[types.UID]string, error) {
	found := map[types.UID]string{}
	var refs []PodRef
	for _, name := range sortedKeys(known) {
		finder, ok := known[name].(PodResponder)
		if !ok {
			continue
		}
		if refs == nil {
			refs = leavingRefs(pods)
		}
		if len(refs) == 0 {
			break
		}
		uids, err := finder.FindPods(ctx, node, refs)
		if err != nil {
			return nil, fmt.Errorf("asking responder %q which pods of node %q wait for it: %w", name, node, err)
		}
		for uid := range uids {
			if found[uid] == "" && uids[uid] {
				found[uid] = name
			}
		}
	}
	return found, nil
}

// leavingRefs names the pods that a drain may still have to evict.
func leavingRefs(pods []*corev1.Pod) []PodRef {
	var refs []PodRef
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && !podIsMirror(pod) && !podFinished(pod) {
			refs = append(refs, refOf(pod))
		}
	}
	return refs
}

// findPodResponders completes a view with the pods that a PodResponder finds, unless the policy leaves that without
// effect.
func findPodResponders(ctx context.Context, d *Drainer, policy Policy, v *NodeView) error {
	if policy.IgnorePodLabels {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, hookEvery)
	defer cancel()
	var err error
	v.Responders, err = findResponders(ctx, d.o.Responders, v.Node.Name, v.Pods)
	return err
}

// namedHooks notes the responders that the pods on the node or the rules of the drain name, for its release: which of them were asked, and
// about which pods, may be known to an earlier process alone, and to take back what was not asked does no harm.
func (p *pass) namedHooks(ctx context.Context, mine holder) {
	if mine.Mode != Drain || p.memory.named || len(p.d.o.Responders) == 0 {
		return
	}
	p.memory.named = true
	n := &nodePass{planner: newPlanner(&Snapshot{}, &p.r.Policy, p.now), view: &NodeView{Node: p.node}}
	pods := p.d.o.Cache.Pods(p.node.Name)
	var found map[types.UID][]string
	if !p.r.Policy.IgnorePodLabels {
		found = foundOrAll(ctx, p.d.o.Responders, p.node.Name, pods)
	}
	for _, pod := range pods {
		names := slices.Concat(mine.Hooks, found[pod.UID])
		if b := behaviorOf(n, pod); b.kind == BehaviorHook && b.invalid == "" {
			names = append(slices.Clone(names), b.hooks...)
		}
		for _, name := range names {
			p.memory.takeBack(HookRequest{Pod: refOf(pod), Node: p.node.Name, Holder: p.r.Holder, Maintenance: mine.Maintenance, Responder: name})
		}
	}
}

// foundOrAll names the PodResponders that may have been asked about each pod: where they cannot say, all of them.
func foundOrAll(
	ctx context.Context, known map[string]Responder, node string, pods []*corev1.Pod,
) map[types.UID][]string {
	ctx, cancel := context.WithTimeout(ctx, recallTime)
	defer cancel()
	out := map[types.UID][]string{}
	found, err := findResponders(ctx, known, node, pods)
	for uid, name := range found {
		out[uid] = []string{name}
	}
	if err == nil {
		return out
	}
	for _, name := range sortedKeys(known) {
		if _, ok := known[name].(PodResponder); !ok {
			continue
		}
		for _, pod := range pods {
			out[pod.UID] = append(out[pod.UID], name)
		}
	}
	return out
}

// responders names those that the rules of a policy ask, each once.
func (p Policy) responders() (names []string) {
	for _, r := range p.Rules {
		names = append(names, r.Hooks...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// takeBack notes a request that has to be taken back.
func (m *memory) takeBack(r HookRequest) {
	if !slices.Contains(m.cancel, r) {
		m.cancel = append(m.cancel, r)
	}
}

// toRecall are the requests that have to be taken back, of responders that are there, by responder.
func (p *pass) toRecall() map[string][]HookRequest {
	for uid, h := range p.memory.hooks {
		p.memory.takeBack(h.request)
		delete(p.memory.hooks, uid)
	}
	return notedRecalls(p)
}

// notedRecalls are the requests that are noted to be taken back.
func notedRecalls(p *pass) map[string][]HookRequest {
	all := map[string][]HookRequest{}
	for _, r := range p.memory.cancel {
		if p.d.o.Responders[r.Responder] != nil {
			all[r.Responder] = append(all[r.Responder], r)
		}
	}
	return all
}

// withdrawFound takes back what was asked of PodResponders, since their requests end in evictions: of every pod where
// nothing may be evicted, and otherwise of those that the plan leaves on the node. A process that finds the node
// stopped names the requests that one before it may have made.
func withdrawFound(ctx context.Context, p *pass, stopped bool) error {
	stays := map[types.UID]bool{}
	for i := range p.plan.Pods {
		pod := &p.plan.Pods[i]
		stays[pod.UID] = pod.Action == Skip || pod.Action == Block && !pod.asksAnyway() && pod.Reason != AdmissionDenied
	}
	for uid, h := range p.memory.hooks {
		_, finds := p.d.o.Responders[h.request.Responder].(PodResponder)
		if finds && (stopped || stays[uid]) {
			p.memory.takeBack(h.request)
			delete(p.memory.hooks, uid)
		}
	}
	if stopped && !p.memory.told.withdrawn {
		noteFound(ctx, p)
	}
	p.memory.told.withdrawn = stopped
	return cancelRequests(ctx, p, notedRecalls(p))
}

// noteFound notes the requests to PodResponders that an earlier process may have made about the pods of the node.
func noteFound(ctx context.Context, p *pass) {
	pods := p.d.o.Cache.Pods(p.node.Name)
	found := foundOrAll(ctx, p.d.o.Responders, p.node.Name, pods)
	for _, pod := range pods {
		for _, name := range found[pod.UID] {
			p.memory.takeBack(HookRequest{Pod: refOf(pod), Node: p.node.Name, Holder: p.r.Holder,
				Maintenance: p.r.Maintenance, Responder: name})
		}
	}
}

// recall takes back what was asked of responders, and then the entry of a node that was given back before. What could not be taken back is
// reported, and done again by the next pass.
func (p *pass) recall(ctx context.Context) error {
	err := p.cancelHooks(ctx)
	if mine := p.mark.of(p.r.Holder); mine == nil || !mine.Recalls {
		return err
	}
	return errors.Join(err, p.forgo(ctx))
}

// forgo takes the entry off a node that was opened a moment ago: others may be about to write it too, to take off the taint that goes with a
// cordon, so that a conflict is followed by another try at once.
func (p *pass) forgo(ctx context.Context) error {
	is := p.st
	ok, err := p.write(ctx, nodeChange{mark: p.mark.without(p.r.Holder)})
	if ok || err != nil {
		return err
	}
	if err := p.reread(ctx); err != nil || p.mark.of(p.r.Holder) == nil {
		return err
	}
	if ok, err = p.write(ctx, nodeChange{mark: p.mark.without(p.r.Holder)}); ok {
		p.st = is
	}
	return err
}

// cancelHooks takes back what was asked of responders, of all of them at the same time. Those that cannot be reached are reported and asked again
// by the next pass, after those that were not asked at all.
func (p *pass) cancelHooks(ctx context.Context) error { return cancelRequests(ctx, p, p.toRecall()) }

// cancelRequests takes back requests, by responder.
func cancelRequests(ctx context.Context, p *pass, noted map[string][]HookRequest) error {
	if len(noted) == 0 {
		p.memory.cancel = nil
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recallTime)
	defer cancel()
	var mu sync.Mutex
	var untold, failed []HookRequest
	var errs []error
	var wg sync.WaitGroup
	for name, requests := range noted {
		wg.Go(func() {
			for i, r := range requests {
				late := i > 0 && ctx.Err() != nil
				err := cancelHook(ctx, p.d.o.Responders[name], r, late)
				mu.Lock()
				switch {
				case late:
					untold = append(untold, r)
				case err != nil:
					failed = append(failed, r)
				}
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	p.memory.cancel = append(untold, failed...)
	return errors.Join(errs...)
}

// cancelHook takes one request back, unless it is too late for that in this pass.
func cancelHook(ctx context.Context, responder Responder, r HookRequest, late bool) error {
	err := ctx.Err()
	if !late {
		err = responder.Cancel(ctx, r)
	}
	if err != nil {
		return fmt.Errorf("taking back the request to responder %q about pod %s: %w", r.Responder, r.Pod, err)
	}
	return nil
}
