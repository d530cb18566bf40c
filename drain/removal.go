// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Finding is a reason not to begin with a node.
type Finding struct {
	Node string
	PodRef
	// Reason is [LocalStorage], LastReplica or QuorumMember for what stops the drain of a node that does not come back, and
	// PodUnhealthy for what puts a drain off.
	Reason  Reason
	Message string
}

// Preflight looks, before the cordon, for what [Policy].Removal stops a drain for and what [Policy].RequireHealthy puts it off for. It is
// pure, as [Plan] is. Findings are in the order of the nodes, then by namespace and name; a pod may have several.
//
// The removal of a node is looked at for all its pods that have not finished, also those that a drain skips: what they keep on the node
// goes with it. Only the local data of mirror pods and of DaemonSets counts as the node's own. A claim that the snapshot
// cannot resolve counts as lost. [Plan] blocks a pod that comes later for the same reasons.
func Preflight(s Snapshot, p Policy, now time.Time) []Finding {
	pl := newPlanner(&s, &p, now)
	var findings []Finding
	for i := range s.Nodes {
		n := nodePass{planner: pl, view: &s.Nodes[i]}
		pods := slices.Clone(n.view.Pods)
		slices.SortFunc(pods, func(a, b *corev1.Pod) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
		})
		for _, pod := range pods {
			findings = n.preflight(findings, pod)
		}
	}
	return findings
}

func (n *nodePass) preflight(findings []Finding, pod *corev1.Pod) []Finding {
	if podFinished(pod) {
		return findings
	}
	w := podWork{pod: pod, behavior: behaviorOf(n, pod)}
	skipped, _ := n.skip(&w)
	for _, l := range n.losses(pod, &w.behavior) {
		if l.reason == LocalStorage && (skipped == reasonMirrorPod || w.Tier == planDaemonTier || skipped == reasonDaemonSetPod) {
			continue
		}
		findings = append(findings, Finding{Node: planNode(n.view), PodRef: refOf(pod), Reason: l.reason, Message: l.message})
	}
	if n.p.RequireHealthy && skipped == reasonNone && pod.DeletionTimestamp == nil && !podReady(pod) {
		findings = append(findings, Finding{Node: planNode(n.view), PodRef: refOf(pod), Reason: reasonPodUnhealthy, Message: "is not ready, its phase is " + string(pod.Status.Phase)})
	}
	return findings
}

// A planLoss is what would be lost with a node.
type planLoss struct {
	reason  Reason
	message string
}

// losses lists what the removal of the node would lose with this pod. A rule that says Evict allows the loss of data; the
// pod's own label does not: it speaks of an eviction, not of the end of its node. Nor does an annotation speak of the
// last replica, whose rule allows the loss of local data.
func (n *nodePass) losses(pod *corev1.Pod, b *planBehavior) []planLoss {
	r := n.p.Removal
	if r == nil {
		return nil
	}
	var all []planLoss
	add := func(reason Reason, message string) {
		if message != "" {
			all = append(all, planLoss{reason, message})
		}
	}
	evict := b.byRule && b.kind == BehaviorEvict
	// What a terminating pod has in an emptyDir is lost already. Its claims are not: it may be about to be created again.
	if !evict && !r.AllowLocalData && pod.DeletionTimestamp == nil {
		add(LocalStorage, cmp.Or(n.scratch(pod), hostData(pod)))
	}
	if (!evict || len(b.rule.Annotations) > 0) && !r.AllowLastReplica {
		add(reasonLastReplica, n.replica(pod))
	}
	if !r.AllowQuorum && b.rule != nil && b.rule.Quorum {
		add(reasonQuorumMember, "a member of a quorum by "+b.rule.String()+", and the node does not come back")
	}
	return all
}

// scratch says what the pod keeps in emptyDir volumes, or nothing if that may be lost. Without a limit there is no saying how much it is;
// the kubelet takes a limit of 0 for none.
func (n *nodePass) scratch(pod *corev1.Pod) string {
	var sum int64
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.EmptyDir == nil {
			continue
		}
		limit := v.EmptyDir.SizeLimit
		switch {
		case n.p.LocalDataLimit <= 0:
			return fmt.Sprintf("what is in its emptyDir volume %q would be lost", v.Name)
		case limit == nil || limit.Sign() <= 0:
			return fmt.Sprintf("what is in its emptyDir volume %q would be lost, and the volume has no size limit", v.Name)
		case limit.Value() > math.MaxInt64-sum:
			sum = math.MaxInt64
		default:
			sum += limit.Value()
		}
	}
	if sum > n.p.LocalDataLimit {
		return fmt.Sprintf("its emptyDir volumes may hold %d bytes, at most %d may be lost", sum, n.p.LocalDataLimit)
	}
	return ""
}

// hostData names a directory or file of the node that the pod can write to.
func hostData(pod *corev1.Pod) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.HostPath == nil || !mountedForWriting(pod, v.Name) {
			continue
		}
		if t := v.HostPath.Type; t != nil {
			switch *t {
			case corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev:
				continue
			}
		}
		return fmt.Sprintf("what it keeps in %q of the node, volume %q, would be lost", v.HostPath.Path, v.Name)
	}
	return ""
}

func mountedForWriting(pod *corev1.Pod, volume string) bool {
	writes := func(c corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume && !m.ReadOnly })
	}
	return slices.ContainsFunc(pod.Spec.Containers, writes) || slices.ContainsFunc(pod.Spec.InitContainers, writes)
}

// replica names a volume of the pod that does not leave the node. Such a volume holds the only copy of this replica's data: nothing
// else can mount it elsewhere. Whether the application has other replicas is not known here, and not asked. Ephemeral claims end with
// their pod and are nobody's replica.
func (n *nodePass) replica(pod *corev1.Pod) string {
	for i := range pod.Spec.Volumes {
		ref := pod.Spec.Volumes[i].PersistentVolumeClaim
		if ref == nil {
			continue
		}
		claim := n.s.Claims[types.NamespacedName{Namespace: pod.Namespace, Name: ref.ClaimName}]
		if claim == nil {
			return fmt.Sprintf("its claim %q is not known here: it may be on a volume that does not leave the node", ref.ClaimName)
		}
		if claim.Spec.VolumeName == "" {
			continue // not bound: holds nothing yet
		}
		volume := n.s.Volumes[claim.Spec.VolumeName]
		if volume == nil {
			return fmt.Sprintf("the volume %q of its claim %q is not known here: it may not leave the node", claim.Spec.VolumeName, ref.ClaimName)
		}
		if volumeOnNode(volume, n.view.Node) {
			return fmt.Sprintf("the volume %q of its claim %q does not leave the node", volume.Name, claim.Name)
		}
	}
	return ""
}

// volumeOnNode reports whether a volume is reachable from this node alone: local, a host path, or bound by each term of its affinity to
// a label value that is the node's name or host name, whatever the key: drivers of local disks have keys of their own.
func volumeOnNode(v *corev1.PersistentVolume, node *corev1.Node) bool {
	if v.Spec.Local != nil || v.Spec.HostPath != nil {
		return true
	}
	a := v.Spec.NodeAffinity
	if a == nil || a.Required == nil || len(a.Required.NodeSelectorTerms) == 0 || node == nil {
		return false
	}
	names := []string{node.Name, node.Labels[corev1.LabelHostname]}
	pins := func(r corev1.NodeSelectorRequirement) bool {
		return r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 && r.Values[0] != "" && slices.Contains(names, r.Values[0])
	}
	for i := range a.Required.NodeSelectorTerms {
		t := &a.Required.NodeSelectorTerms[i]
		if !slices.ContainsFunc(t.MatchExpressions, pins) && !slices.ContainsFunc(t.MatchFields, pins) {
			return false
		}
	}
	return true
}
