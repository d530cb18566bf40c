// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Cluster is what [PlaceReplacements] knows of a cluster. A nil map means that nothing is known of these objects.
type Cluster struct {
	// Nodes are all Nodes, also those that are drained.
	Nodes []*corev1.Node
	// Pods are the pods that are bound to Nodes, also those that leave. Pods without a Node are ignored.
	Pods []*corev1.Pod
	// Draining names the Nodes that take no replacement.
	Draining []string
	// Claims and Volumes are those of the pods that leave, Classes the StorageClasses by name.
	Claims  map[types.NamespacedName]*corev1.PersistentVolumeClaim
	Volumes map[string]*corev1.PersistentVolume
	Classes map[string]*storagev1.StorageClass
	// NamespaceLabels has the labels of namespaces by name, for affinity terms with a namespaceSelector.
	NamespaceLabels map[string]map[string]string
}

// A Verdict says whether the replacement of a pod finds a Node.
type Verdict struct {
	// Fits is true where a Node takes the replacement, as far as it was checked.
	Fits bool
	// Node is one that takes it; empty without Fits.
	Node string
	// Why counts, without Fits, the Nodes by what keeps the replacement from them, for example
	// "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) didn't match Pod's node affinity/selector".
	Why string
	// Unchecked says what could not be checked, for example "volume data: the PersistentVolume pv-1 is not known"; empty
	// for nothing.
	Unchecked string
}

// PlaceReplacements estimates, for each of the pods that leave, whether its replacement finds a Node when all of
// them have left. The verdicts are in the order of leaving. Replacements of a higher priority are placed first, as
// the scheduler does; those of the same priority in the order that is given.
func PlaceReplacements(c Cluster, leaving []*corev1.Pod) []Verdict {
	s := newState(&c, leaving)
	order := make([]int, len(leaving))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(priorityOf(leaving[b]), priorityOf(leaving[a]))
	})
	verdicts := make([]Verdict, len(leaving))
	for _, i := range order {
		verdicts[i] = s.placePod(leaving[i])
	}
	return verdicts
}

func priorityOf(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// A state is the cluster with the replacements that have found a place.
type state struct {
	*Cluster
	nodes    []*nodeState
	repelled []placedPod // pods with required anti-affinity
}

// A nodeState is a Node and what is on it.
type nodeState struct {
	node     *corev1.Node
	draining bool
	free     amounts // allocatable less what is used
	pods     []*corev1.Pod
	ports    []hostPort
}

// A placedPod is a pod and its Node.
type placedPod struct {
	pod  *corev1.Pod
	node *corev1.Node
}

func newState(c *Cluster, leaving []*corev1.Pod) *state {
	s := &state{Cluster: c}
	byName := make(map[string]*nodeState, len(c.Nodes))
	for _, node := range c.Nodes {
		n := &nodeState{node: node, draining: slices.Contains(c.Draining, node.Name), free: allocatableOf(node)}
		s.nodes = append(s.nodes, n)
		byName[node.Name] = n
	}
	slices.SortFunc(s.nodes, func(a, b *nodeState) int { return cmp.Compare(a.node.Name, b.node.Name) })
	gone := make(map[types.UID]bool, len(leaving))
	for _, pod := range leaving {
		gone[pod.UID] = true
	}
	for _, pod := range c.Pods {
		if n := byName[pod.Spec.NodeName]; n != nil && !gone[pod.UID] && !hasFinished(pod) {
			s.addPod(n, pod)
		}
	}
	return s
}

func hasFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (s *state) addPod(n *nodeState, pod *corev1.Pod) {
	n.free.subtractAmounts(requestOf(pod))
	n.ports = append(n.ports, hostPortsOf(pod)...)
	n.pods = append(n.pods, pod)
	if len(requiredAntiAffinity(pod)) > 0 {
		s.repelled = append(s.repelled, placedPod{pod, n.node})
	}
}

// placePod finds the Node with the most room for the replacement of a pod, and puts it there.
func (s *state) placePod(pod *corev1.Pod) Verdict {
	f := s.newFilter(pod)
	v := Verdict{Unchecked: strings.Join(f.unchecked, "; ")}
	why := map[string]int{}
	var best *nodeState
	for _, n := range s.nodes {
		reasons := f.rejectionsBy(n)
		for _, reason := range reasons {
			why[reason]++
		}
		if len(reasons) == 0 && (best == nil || roomFor(f.request, n) > roomFor(f.request, best)) {
			best = n
		}
	}
	if best == nil {
		v.Why = explainCounts(len(s.nodes), why)
		return v
	}
	v.Fits, v.Node = true, best.node.Name
	replacement := *pod
	replacement.UID, replacement.DeletionTimestamp = "", nil
	replacement.Spec.NodeName = best.node.Name
	replacement.Status = corev1.PodStatus{}
	s.addPod(best, &replacement)
	return v
}

// explainCounts has the form of the scheduler's event FailedScheduling.
func explainCounts(nodes int, why map[string]int) string {
	if nodes == 0 {
		return "no nodes available to schedule pods"
	}
	counts := make([]string, 0, len(why))
	for reason, count := range why {
		counts = append(counts, fmt.Sprintf("%d %s", count, reason))
	}
	slices.Sort(counts)
	return fmt.Sprintf("0/%d nodes are available: %s", nodes, strings.Join(counts, ", "))
}

// A filter is what the Nodes are asked for the replacement of one pod.
type filter struct {
	*state
	pod       *corev1.Pod
	request   amounts
	ports     []hostPort
	volumes   []volumeNeed
	affinity  podAffinity
	spread    []spreadCount
	unchecked []string
}

func (s *state) newFilter(pod *corev1.Pod) *filter {
	f := &filter{state: s, pod: pod, request: requestOf(pod), ports: hostPortsOf(pod)}
	f.collectVolumes()
	f.countAffinity()
	f.countSpread()
	if len(pod.Spec.ResourceClaims) > 0 {
		f.noteUnchecked("its resource claims (dynamic resource allocation)")
	}
	return f
}

func (f *filter) noteUnchecked(what string, args ...any) {
	if note := fmt.Sprintf(what, args...); !slices.Contains(f.unchecked, note) {
		f.unchecked = append(f.unchecked, note)
	}
}

// rejectionsBy are why a Node does not take the replacement: those of the first check that fails, in the order of the
// scheduler's plugins.
func (f *filter) rejectionsBy(n *nodeState) []string {
	for _, check := range []func(*filter, *nodeState) string{checkNode, checkPorts} {
		if reason := check(f, n); reason != "" {
			return []string{reason}
		}
	}
	if missing := f.request.exceedFree(n.free); len(missing) > 0 {
		return missing
	}
	for _, check := range []func(*filter, *nodeState) string{checkVolumes, checkSpread, checkAffinity} {
		if reason := check(f, n); reason != "" {
			return []string{reason}
		}
	}
	return nil
}
