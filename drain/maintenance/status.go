// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/v1alpha1"
)

// The reasons of conditions that are neither a phase nor the reason of a node.
const (
	reasonInvalid        = "Invalid"
	reasonNoNodes        = "NoNodes"
	reasonPodsBlocked    = "PodsBlocked"
	reasonDeadlinePassed = "DeadlinePassed"
	reasonHoldEnded      = "HoldEnded"
	reasonNoWindow       = "NoWindowFollows"
	reasonNotStalled     = "NotStalled"
)

// maxMessage bounds messages, in bytes.
const maxMessage = 1024

// A verdict is what the phase and the conditions say.
type verdict struct {
	phase           v1alpha1.Phase
	reason, message string
}

// An observation is what has become known of the nodes of an object.
type observation struct {
	// nodes are the statuses that package drain has returned, plans the previews of nodes that were not begun, by name.
	nodes map[string]drain.Status
	plans map[string]drain.NodePlan
	// failure is why the pass could not do all that it should have.
	failure error
}

// statusOf is pure: it says how an object that is not being deleted stands.
func statusOf(o *v1alpha1.NodeMaintenance, d decision, seen observation, now time.Time) v1alpha1.NodeMaintenanceStatus {
	st := *o.Status.DeepCopy()
	st.ObservedGeneration = o.Generation
	if d.problem != nil { // what was known of the nodes stays
		setVerdict(&st, o.Generation, verdict{v1alpha1.PhaseInvalid, reasonInvalid, d.problem.Error()}, now)
		return st
	}
	mode := drain.Mode(o.Spec.Mode)
	all := make([]drain.Status, len(d.targets))
	st.TotalNodes, st.ReadyNodes, st.FailedNodes = int32(len(all)), 0, 0
	for i, name := range d.targets {
		s, ok := seen.nodes[name]
		if !ok {
			s = drain.Status{Node: name, Mode: mode, Phase: drain.Pending}
		}
		all[i] = s
		switch {
		case isReady(s, mode):
			st.ReadyNodes++
		case isFailed(s):
			st.FailedNodes++
		}
	}
	v := findVerdict(d, all, mode)
	if seen.failure != nil && v.phase != v1alpha1.PhaseReady {
		v.message += "; tried again later: " + seen.failure.Error()
	}
	setVerdict(&st, o.Generation, v, now)
	st.Preview = nil
	if mode == drain.Drain {
		st.Preview = previewOf(all, seen.plans)
	}
	st.Nodes = resultsOf(all, mode)
	return st
}

// isReady reports whether a node has come as far as the mode goes. One that is not there has not, also where its
// drain had begun: the next process would not know of that.
func isReady(s drain.Status, mode drain.Mode) bool {
	if s.Reason == drain.NodeNotFound {
		return false
	}
	switch mode {
	case drain.Cordon:
		return s.Phase == drain.Cordoned
	case drain.Hold:
		return s.Phase == drain.Holding
	default:
		return s.Phase == drain.Drained
	}
}

// isFailed reports whether a node will not get there as things are.
func isFailed(s drain.Status) bool {
	gone := s.Phase == drain.Failed || s.Reason == drain.NodeNotFound
	return gone || s.Phase == drain.HoldEnded || s.Reason == reasonDeadlinePassed
}

// needPerson are the reasons of a node that a person alone can mend.
var needPerson = []drain.Reason{drain.UncordonedByOther, "MarkUnreadable", "DataLoss", drain.Frozen}

// waitsForOthers are the reasons of a node that waits for the other ones of its set.
var waitsForOthers = []drain.Reason{"WaitingForSlot", "WaitingForGroup"}

// findVerdict finds the phase, and why.
func findVerdict(d decision, all []drain.Status, mode drain.Mode) verdict {
	var ready, moving int
	var stuck, pending *drain.Status
	for i := range all {
		s := &all[i]
		switch {
		case isReady(*s, mode):
			ready++
		case isFailed(*s), s.Outcome == drain.OutcomeBlocked, slices.Contains(needPerson, s.Reason):
			stuck = cmp.Or(stuck, s)
		case slices.Contains(waitsForOthers, s.Reason):
			pending = cmp.Or(pending, s)
		default:
			moving++
			pending = cmp.Or(pending, s)
		}
	}
	progress := fmt.Sprintf("%d of %d nodes are ready", ready, len(all))
	switch {
	case len(all) == 0:
		return verdict{v1alpha1.PhaseBlocked, reasonNoNodes, "nodeSelector matches no Node"}
	case ready == len(all):
		return verdict{v1alpha1.PhaseReady, string(v1alpha1.PhaseReady), progress}
	case d.late && mode == drain.Hold:
		const message = "the hold is over: the Lease is no longer renewed, and the cordon stays"
		return verdict{v1alpha1.PhaseStopped, reasonHoldEnded, message}
	case d.late:
		progress += ": the deadline has passed, and nothing more is evicted"
		return verdict{v1alpha1.PhaseStopped, reasonDeadlinePassed, progress + describeNode(stuck)}
	case d.waiting && d.over:
		return verdict{v1alpha1.PhaseBlocked, reasonNoWindow, "no window is open, and none follows"}
	case d.waiting:
		message := "the next window opens at " + d.opens.UTC().Format(time.RFC3339)
		return verdict{v1alpha1.PhaseWaiting, string(drain.WindowClosed), message}
	case moving == 0 && stuck != nil:
		return verdict{v1alpha1.PhaseBlocked, stuckReason(stuck), progress + describeNode(stuck)}
	}
	return verdict{v1alpha1.PhaseRunning, string(v1alpha1.PhaseRunning), progress + describeNode(cmp.Or(stuck, pending))}
}

// stuckReason is the reason of a node that does not go on.
func stuckReason(s *drain.Status) string {
	if s.Phase == drain.Draining || s.Reason == "" {
		return reasonPodsBlocked
	}
	return string(s.Reason)
}

// describeNode says what stands in the way of one node: what it says itself, or its first blocked pod.
func describeNode(s *drain.Status) string {
	if s == nil {
		return ""
	}
	why := s.Message
	if i := slices.IndexFunc(s.Blockers, isBlocked); i >= 0 && s.Phase == drain.Draining {
		why = fmt.Sprintf("pod %s: %s: %s", s.Blockers[i].PodRef, s.Blockers[i].Reason, s.Blockers[i].Message)
	}
	if why == "" {
		return ""
	}
	return fmt.Sprintf("; node %q: %s", s.Node, why)
}

func isBlocked(b drain.Blocker) bool { return b.Action == drain.Block }

// setVerdict sets the phase and the conditions. Those that say the same keep their time.
func setVerdict(st *v1alpha1.NodeMaintenanceStatus, generation int64, v verdict, now time.Time) {
	st.Phase, st.Message = v.phase, cutMessage(v.message)
	set := func(kind string, yes bool, otherwise string) {
		c := metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: otherwise, ObservedGeneration: generation,
			LastTransitionTime: metav1.NewTime(now.UTC().Truncate(time.Second)),
		}
		if kind == v1alpha1.ConditionReady {
			c.Message = st.Message
		}
		if yes {
			c.Status, c.Reason, c.Message = metav1.ConditionTrue, v.reason, st.Message
		}
		meta.SetStatusCondition(&st.Conditions, c)
	}
	goesOn := v.phase == v1alpha1.PhaseRunning || v.phase == v1alpha1.PhaseWaiting || v.phase == v1alpha1.PhaseReleasing
	stalled := !goesOn && v.phase != v1alpha1.PhaseReady
	set(v1alpha1.ConditionReady, v.phase == v1alpha1.PhaseReady, v.reason)
	set(v1alpha1.ConditionReconciling, goesOn, v.reason)
	set(v1alpha1.ConditionStalled, stalled, reasonNotStalled)
}

// previewOf adds up what a drain still does: of nodes that were begun by their statuses, of others by their plans.
func previewOf(all []drain.Status, plans map[string]drain.NodePlan) *v1alpha1.Preview {
	p := &v1alpha1.Preview{}
	for i := range all {
		s := &all[i]
		counts := s.Counts
		plan, planned := plans[s.Node]
		if planned && !wasBegun(*s) {
			counts = plan.Counts
			for _, pod := range plan.Pods {
				if pod.Action == drain.Block {
					p.BlockedPods = append(p.BlockedPods, blockedPod(s.Node, pod.PodRef, pod.Reason, pod.Message))
				}
			}
		}
		for _, b := range s.Blockers {
			if isBlocked(b) && !(planned && !wasBegun(*s)) {
				p.BlockedPods = append(p.BlockedPods, blockedPod(s.Node, b.PodRef, b.Reason, b.Message))
			}
		}
		p.Evictions += int32(counts.Evictable)
		p.Waiting += int32(counts.Waiting + counts.Terminating)
		p.Blocked += int32(counts.Blocked)
		p.Stays += int32(counts.Skipped)
	}
	slices.SortStableFunc(p.BlockedPods, func(a, b v1alpha1.BlockedPod) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	p.BlockedPods = p.BlockedPods[:min(len(p.BlockedPods), v1alpha1.MaxBlockedPods)]
	return p
}

// wasBegun reports whether a status is of a node whose pods it counts.
func wasBegun(s drain.Status) bool { return s.Phase != drain.Pending && s.Phase != drain.Cordoned }

func blockedPod(node string, pod drain.PodRef, reason drain.Reason, message string) v1alpha1.BlockedPod {
	return v1alpha1.BlockedPod{
		Namespace: pod.Namespace, Name: pod.Name, Node: node, Reason: string(reason), Message: cutMessage(message),
	}
}

// resultsOf lists the first nodes, those that are not ready before the others.
func resultsOf(all []drain.Status, mode drain.Mode) []v1alpha1.NodeResult {
	all = slices.Clone(all)
	rank := func(s drain.Status) int {
		if isReady(s, mode) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b drain.Status) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Node, b.Node))
	})
	var out []v1alpha1.NodeResult
	for _, s := range all[:min(len(all), v1alpha1.MaxNodes)] {
		out = append(out, v1alpha1.NodeResult{
			Name: s.Node, UID: s.NodeUID, Phase: string(s.Phase), Reason: string(s.Reason), Message: cutMessage(s.Message),
			Remaining: int32(s.Counts.Remaining), Blocked: int32(s.Counts.Blocked), Evicted: int32(s.Counts.Evicted),
		})
	}
	return out
}

// releasingStatus says what an object that is being deleted waits for.
func releasingStatus(o *v1alpha1.NodeMaintenance, left []drain.Status, now time.Time) v1alpha1.NodeMaintenanceStatus {
	st := *o.Status.DeepCopy()
	st.ObservedGeneration = o.Generation
	message := fmt.Sprintf("%d nodes are being given back", len(left))
	for i := range left {
		if text := describeNode(&left[i]); text != "" {
			message += text
			break
		}
	}
	setVerdict(&st, o.Generation, verdict{v1alpha1.PhaseReleasing, string(v1alpha1.PhaseReleasing), message}, now)
	return st
}

// cutMessage shortens a message to what a status takes, at the end of a character.
func cutMessage(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage-3], "") + "..."
}
