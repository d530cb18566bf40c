// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// judge takes the decisions that need no other pod. What is left open goes on in settle.
func (n *nodePass) judge(w *podWork) {
	w.behavior = behaviorOf(n, w.pod)
	w.behavior.addFound(n.view.Responders[w.UID])
	w.Tier = w.behavior.tier
	if reason, message := n.skip(w); reason != reasonNone {
		w.decide(Skip, reason, message)
		return
	}
	n.guard(w)
	switch {
	case n.ladder.forced:
		// The machine is off: its pods run no more, whatever they wait for.
		w.decide(Evict, reasonNone, "")
		w.Step = StepOutOfService
	case w.pod.DeletionTimestamp != nil:
		n.judgeTerminating(w)
	case podFinished(w.pod):
		w.stage, w.ladder = stageOpen, true
	case w.behavior.kind == BehaviorWaitCompleted && w.behavior.invalid == "" && n.waitsForCompletion(w):
	case w.behavior.asksHooks() && n.waitsForHook(w):
	default:
		w.stage, w.ladder = stageOpen, true
	}
}

// skip says why a pod is neither asked to leave nor waited for. Mirror pods come first: nothing else that is said about them has any
// effect. A pod that has finished holds nothing on the node, even if finalizers keep its object.
func (n *nodePass) skip(w *podWork) (Reason, string) {
	pod := w.pod
	if podIsMirror(pod) {
		return reasonMirrorPod, "a static pod: only the kubelet can stop it"
	}
	if podFinished(pod) && !n.p.DeleteFinished {
		return reasonTerminal, "has ended with phase " + string(pod.Status.Phase)
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	switch {
	case n.wantedByDaemonSet(owner):
		if n.p.DaemonSets != LastDaemonSets {
			return reasonDaemonSetPod, fmt.Sprintf("DaemonSet %q would put it back at once", owner.Name)
		}
		w.Tier = planDaemonTier
		if reason, message := n.bounced(owner); reason != reasonNone {
			return reason, message
		}
	case toleratesCordon(pod) && !ownedByDaemonSet(owner):
		if n.p.Tolerating == skipPods {
			return reasonToleratesCordon, "tolerates the cordon, and the policy leaves it"
		}
		if reason, message := n.bounced(owner); reason != reasonNone {
			return reason, message
		}
	}
	if w.behavior.kind == BehaviorSkip {
		return reasonSkippedByRule, w.behavior.source() + " leaves it alone"
	}
	return reasonNone, ""
}

func (n *nodePass) bounced(owner *metav1.OwnerReference) (Reason, string) {
	if owner == nil || n.view.Bounces[owner.UID] < planBounces {
		return reasonNone, ""
	}
	return reasonBounced, fmt.Sprintf("pods of %s %q came back %d times", owner.Kind, owner.Name, n.view.Bounces[owner.UID])
}

// judgeTerminating waits for a pod that has been asked to leave, and after its time says what holds it.
func (n *nodePass) judgeTerminating(w *podWork) {
	// The server has added the grace period to the timestamp.
	end := w.pod.DeletionTimestamp.Add(planMargin)
	if at := n.view.Shortened[w.UID]; !at.IsZero() && w.pod.DeletionGracePeriodSeconds != nil {
		own := at.Add(time.Duration(*w.pod.DeletionGracePeriodSeconds)*time.Second + planMargin)
		if own.After(end) {
			end = own
		}
	}
	if shortensNow(n, w) {
		return
	}
	if n.now.Before(end) {
		w.decide(Wait, Terminating, "its grace period ends at "+planTime(w.pod.DeletionTimestamp.Time))
		n.wake(end)
		return
	}
	since := planTime(w.pod.DeletionTimestamp.Time)
	// The silent kubelet goes first: a finalizer is often removed only after it has said that the containers are gone.
	switch {
	case n.unreachable:
		w.decide(Block, reasonNodeUnreachable, fmt.Sprintf("should be gone since %s, and the kubelet of its node does not answer", since))
	case len(w.pod.Finalizers) > 0:
		w.decide(Block, reasonFinalizersRemain, fmt.Sprintf("should be gone since %s, %d finalizers hold it: %q", since, len(w.pod.Finalizers), w.pod.Finalizers))
	default:
		w.decide(Block, reasonStuckTerminating, fmt.Sprintf("should be gone since %s, and its kubelet answers", since))
	}
}

// waitsForCompletion reports whether the pod may still finish by itself. The time counts from the start of the drain; a drain that has
// not begun has not waited.
func (n *nodePass) waitsForCompletion(w *podWork) bool {
	message := w.behavior.source() + " lets it finish"
	if d := w.behavior.deadline; d > 0 && !n.view.Started.IsZero() {
		end := n.view.Started.Add(d)
		if !n.now.Before(end) {
			return false
		}
		n.wake(end)
		message += ", until " + planTime(end)
	}
	w.decide(Wait, reasonWaitingForCompletion, message)
	return true
}

// settle goes on with what judge has left open, now that the order is known.
func (n *nodePass) settle(w *podWork) {
	if w.Action == Hook && w.fresh && w.gated {
		n.waitForOrder(w)
		w.Hook, w.HookSilence = "", 0
	}
	if w.stage != stageOpen {
		return
	}
	due := ladderFor(n, w).due
	var reason Reason
	var message string
	if due == nil {
		reason, message = n.obstacle(w)
	}
	if due != nil && w.deletesLater(n.view.Asked, n.now) {
		n.wake(w.deleteAt)
		due, w.urgent = nil, true
	}
	answer, answered := n.view.Attempts[w.UID]
	switch {
	case reason != reasonNone:
		w.decide(Block, reason, message)
	case answered && w.isHeldBy(answer, due != nil):
		n.hold(w, answer)
	case due == nil:
		settleByBudget(n, w)
	case w.gated:
		n.waitForOrder(w)
	default:
		w.decide(Evict, reasonNone, "")
		w.Step, w.GracePeriodSeconds = due.Step, n.grace(w.pod, due.GracePeriodSeconds)
	}
}

// settleByBudget goes on with a pod that budgets and the order alone may hold.
func settleByBudget(n *nodePass, w *podWork) {
	reason, message := n.budgetObstacle(w)
	switch {
	case reason != reasonNone:
		w.decide(Block, reason, message)
		if !w.gated {
			w.askAnyway(n.grace(w.pod, nil))
		}
	case w.gated:
		n.waitForOrder(w)
	case w.Guarded:
		w.stage = stageBudget
	default:
		n.evict(w)
	}
}

func (n *nodePass) evict(w *podWork) {
	w.decide(Evict, reasonNone, "")
	w.Step, w.GracePeriodSeconds = StepEvict, n.grace(w.pod, nil)
}

// grace picks the grace period: the step's, else the policy's, else the pod's own. It is never 0, not even the pod's own: with 0 the
// server forgets the pod at once, while its processes may still run.
func (n *nodePass) grace(pod *corev1.Pod, step *int64) *int64 {
	g := step
	if g == nil {
		g = n.p.GracePeriodSeconds
	}
	own := pod.Spec.TerminationGracePeriodSeconds
	if g == nil && (own == nil || *own != 0) || g != nil && *g > 0 {
		return g
	}
	one := int64(1)
	return &one
}

// obstacle says what somebody has to do something about before the pod can leave.
func (n *nodePass) obstacle(w *podWork) (Reason, string) {
	if podFinished(w.pod) {
		return reasonNone, ""
	}
	if w.behavior.invalid != "" {
		return InvalidBehavior, w.behavior.invalid
	}
	if reason, message := blockedByBehavior(n, w); reason != reasonNone {
		return reason, message
	}
	if reason, message := n.protection(w); reason != reasonNone {
		return reason, message
	}
	owner := metav1.GetControllerOfNoCopy(w.pod)
	if reason, message := n.bounced(owner); reason != reasonNone && w.behavior.kind != BehaviorEvict {
		return reason, message
	}
	if n.s.Fits != nil && owner != nil && !ownedByDaemonSet(owner) {
		if ok, why := n.s.Fits(w.pod); !ok {
			return reasonNowhereToGo, "no other node takes it: " + why
		}
	}
	return reasonNone, ""
}

// protection keeps what would be lost for good. It is asked after a responder has had its chance, and not if that one has evacuated the pod.
func (n *nodePass) protection(w *podWork) (Reason, string) {
	if w.hookDone {
		return reasonNone, ""
	}
	if l := n.losses(w.pod, &w.behavior); len(l) > 0 {
		return l[0].reason, l[0].message
	}
	if w.behavior.kind == BehaviorEvict {
		return reasonNone, ""
	}
	if n.p.Unmanaged != EvictPods && !n.managed(w.pod) {
		return Unmanaged, "no controller would create it again"
	}
	if n.p.LocalData != EvictPods && (n.p.Removal == nil || !n.p.Removal.AllowLocalData) {
		if message := n.scratch(w.pod); message != "" {
			return LocalStorage, message
		}
	}
	return reasonNone, ""
}

// managed reports whether something creates the pod again. A DaemonSet that does not exist any more does not.
func (n *nodePass) managed(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && (!ownedByDaemonSet(owner) || n.wantedByDaemonSet(owner))
}

func (n *nodePass) wantedByDaemonSet(owner *metav1.OwnerReference) bool {
	return ownedByDaemonSet(owner) && (n.s.DaemonSets == nil || n.s.DaemonSets[owner.UID])
}

func ownedByDaemonSet(owner *metav1.OwnerReference) bool {
	return owner != nil && owner.Kind == "DaemonSet"
}

func podIsMirror(pod *corev1.Pod) bool {
	if _, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; ok {
		return true
	}
	for i := range pod.OwnerReferences {
		if o := &pod.OwnerReferences[i]; o.Kind == "Node" && o.APIVersion == "v1" {
			return true
		}
	}
	return false
}

func podFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func podReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// toleratesCordon reports whether the scheduler would put the pod on a cordoned node.
func toleratesCordon(pod *corev1.Pod) bool {
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		exists := t.Operator == corev1.TolerationOpExists
		equal := (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == ""
		key := t.Key == corev1.TaintNodeUnschedulable && (exists || equal) || t.Key == "" && exists
		if key && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule) {
			return true
		}
	}
	return false
}

// nodeUnreachable reports whether the kubelet gives no signs of life.
func nodeUnreachable(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	for i := range node.Spec.Taints {
		if node.Spec.Taints[i].Key == corev1.TaintNodeUnreachable {
			return true
		}
	}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionUnknown
		}
	}
	return false
}
