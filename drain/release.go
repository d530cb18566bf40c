// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// crashLoop is how many restarts of a container during the watch of a returned node count as a crash loop.
const crashLoop = 3

// release gives the node back: taint and cordon go in one write, then requests to responders are taken back, then the mark goes. Whatever responders
// do, the node is open; whatever becomes of this process, the next one knows whom to tell.
func (p *pass) release(ctx context.Context) error {
	p.d.scheduler.forget(p.r.Node)
	p.st.Counts.Evicted = len(p.memory.evicted)
	mine := p.mark.of(p.r.Holder)
	if mine.isOfOtherRun(p.r) && (p.memory.told.superseded || !mine.isLeftTo(p.r, p.now)) { // which holds the node
		p.st.Phase, p.st.Reason, p.st.Message = Released, reasonNone, ""
		p.drop()
		return nil
	}
	if mine == nil {
		return p.releaseNothing(ctx, p.cancelHooks(ctx))
	}
	p.st.Started, p.st.Finished = mine.Since, mine.Drained
	p.namedHooks(ctx, *mine)
	if mine.Released.IsZero() {
		p.st.Phase = Pending
		after := p.afterwards(*mine)
		if ok, err := openNode(ctx, p, after); !ok {
			return err
		}
		if after == nil {
			return p.released(ctx, nil)
		}
		mine, p.st.Reason, p.st.Message = after, reasonNone, ""
	}
	switch {
	case mine.Frozen != "":
		p.st.Phase, p.st.Reason, p.st.Message = Soak, Frozen, mine.Frozen
		return p.cancelHooks(ctx)
	case mine.Recalls:
		return p.letGo(ctx)
	}
	return errors.Join(p.soak(ctx, *mine), p.cancelHooks(ctx))
}

// openNode takes the holder out of the mark, or leaves it watching, and opens the node after the last one. A cordon
// that another client has set since stays, which an event says. It reports whether it has written.
func openNode(ctx context.Context, p *pass, watching *holder) (bool, error) {
	if ok, err := readOwners(ctx, p, p.mark); !ok {
		return false, err
	}
	change := releaseOf(p.node, p.mark, p.r.Holder, watching)
	kept := p.mark.opensNode(p.node, change.mark) && change.unschedulable == nil
	by, _ := fieldOwners(p.node)
	ok, err := p.write(ctx, change)
	if ok && kept {
		note := fmt.Sprintf("the node stays cordoned: %s has cordoned it since", strings.Join(by, ", "))
		p.event(corev1.EventTypeNormal, "CordonKept", note)
	}
	return ok, err
}

// afterwards is what stays of the holder's entry when the node is open: what watches it, or who has to be told. Nil is nothing.
func (p *pass) afterwards(mine holder) *holder {
	mine.Released, mine.OutOfService = p.now, false
	if mine.Frozen != "" || p.r.Policy.Soak > 0 && !mine.Drained.IsZero() {
		return &mine
	}
	return p.recalling(mine)
}

// recalling is the entry of a node that is given back and has requests to be taken back, nil if there are none.
func (p *pass) recalling(mine holder) *holder {
	if len(p.toRecall()) == 0 {
		return nil
	}
	mine.Released, mine.OutOfService, mine.Recalls = p.now, false, true
	return &mine
}

// letGo takes back what was asked about a node that is open, and ends the business with it.
func (p *pass) letGo(ctx context.Context) error {
	p.st.Phase = Pending
	err := p.recall(ctx)
	if p.mark.of(p.r.Holder) != nil {
		return err
	}
	return p.released(ctx, err)
}

// releaseNothing ends the business with a node that carries no entry of the holder, as far as the cache shows. Where that may be behind a
// write of this holder, or of the process before, the server itself is asked.
func (p *pass) releaseNothing(ctx context.Context, hooks error) error {
	if err := p.takeOff(ctx); err != nil || p.memory.stray {
		return errors.Join(hooks, err)
	}
	if p.memory.unsure.Load() {
		if there, err := p.markedOnServer(ctx); there || err != nil {
			return errors.Join(hooks, err)
		}
	}
	return p.released(ctx, hooks)
}

// markedOnServer reports whether the holder's entry is on the node though the cache does not show it yet. The next pass then sees it.
func (p *pass) markedOnServer(ctx context.Context) (bool, error) {
	p.st.Phase = Pending
	node, err := p.d.o.Client.GetNode(ctx, p.node.Name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("making sure that nothing is on node %q: %w", p.node.Name, err)
	}
	m, err := markOf(node)
	if err != nil || m.of(p.r.Holder) == nil || node.UID != p.node.UID {
		p.memory.unsure.Store(err != nil)
		return false, err
	}
	p.d.registry.wrote(p.d.o.Cache, node)
	p.st.Reason, p.st.Message = reasonWriteConflict, fmt.Sprintf("node %q has changed since it was read", p.node.Name)
	p.ask(soon)
	return true, nil
}

// reread takes the node as the server has it, where the cache may be behind what is on it.
func (p *pass) reread(ctx context.Context) error {
	p.st.Phase = Pending
	node, err := p.d.o.Client.GetNode(ctx, p.node.Name)
	if err == nil && node.UID == p.node.UID {
		p.node = node
		p.d.registry.wrote(p.d.o.Cache, node)
		p.mark, err = markOf(node)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking whether node %q is cordoned: %w", p.node.Name, err)
	}
	p.memory.doubt.Store(false)
	return nil
}

// drop forgets the holder's business with the node.
func (p *pass) drop() {
	p.d.registry.drop(key{p.r.Node, p.r.Holder})
	p.dropped = true
}

// released ends the business with the node.
func (p *pass) released(ctx context.Context, hooks error) error {
	if ok, err := p.unpublish(ctx); !ok || err != nil {
		p.st.Phase = Pending
		return err
	}
	p.st.Phase, p.st.Reason, p.st.Message = Released, reasonNone, ""
	if hooks == nil {
		p.drop()
	}
	return hooks
}

// soak watches a returned node. Trouble is recorded on it, which freezes the holder's fleet; without any the mark goes.
func (p *pass) soak(ctx context.Context, mine holder) error {
	p.st.Phase, p.st.Reason = Soak, reasonSoaking
	end := mine.Released.Add(p.r.Policy.Soak)
	if ok, err := p.unpublish(ctx); !ok {
		return err // a node that is open is not under maintenance
	}
	pods := p.d.o.Cache.Pods(p.node.Name)
	over := !p.now.Before(end)
	if why := returnedBad(p.node, pods, p.memory.restarts, over); why != "" {
		mine.Frozen = why
		ok, err := p.write(ctx, nodeChange{mark: p.mark.with(mine)})
		if ok {
			p.st.Reason, p.st.Message = Frozen, why
			p.event(corev1.EventTypeWarning, "Frozen", why)
		}
		return err
	}
	if !over {
		p.st.Message = fmt.Sprintf("released, and watched until %s", end.UTC().Format(time.RFC3339))
		p.askAt(end)
		return nil
	}
	if ok, err := p.write(ctx, nodeChange{mark: p.mark.without(p.r.Holder)}); !ok {
		return err
	}
	return p.released(ctx, nil)
}

// returnedBad says what is wrong with a node that came back: a crash loop at any time, a node or pod that is not ready at the end. Restarts
// count from the first look; base keeps that.
func returnedBad(node *corev1.Node, pods []*corev1.Pod, base map[types.UID]int32, over bool) string {
	for _, pod := range pods {
		restarts := int32(0)
		for _, c := range pod.Status.ContainerStatuses {
			restarts += c.RestartCount
			if w := c.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
				return fmt.Sprintf("pod %s/%s: container %q is in CrashLoopBackOff after %d restarts", pod.Namespace, pod.Name, c.Name, c.RestartCount)
			}
		}
		first, seen := base[pod.UID]
		if !seen {
			base[pod.UID] = restarts
		} else if restarts-first >= crashLoop {
			return fmt.Sprintf("pod %s/%s has restarted %d times since the node came back", pod.Namespace, pod.Name, restarts-first)
		}
	}
	if !over {
		return ""
	}
	if !nodeReady(node) {
		return fmt.Sprintf("node %q is not ready at the end of its watch", node.Name)
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && !podFinished(pod) && !podReady(pod) {
			return fmt.Sprintf("pod %s/%s is not ready at the end of the watch", pod.Namespace, pod.Name)
		}
	}
	return ""
}

// nodeReady reports whether the node is ready.
func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
