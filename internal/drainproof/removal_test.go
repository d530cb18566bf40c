// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// TestRemovalNamesWhatTheNodeTakesWithIt has a pod with local data, one on a claim whose volume is on the node's disk, and the member of a
// quorum. Each stops the drain, until a rule allows it. R-DR-18
// Fails when the preflight is not asked, when claims and volumes are not resolved, when members are not looked for, and when a rule does
// not allow.
func TestRemovalNamesWhatTheNodeTakesWithIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.mustNode(t, "a", workRole).Name
	c.keepsData(t, a)
	c.settled(t, 4)
	user := c.name + "-drainer"
	d, err := connectWith(t.Context(), c.asDrainer(t, user), kube.CacheOptions{DaemonSets: true, Volumes: true}, nil)
	must(t, err)
	s := setOf(user, drain.Drain, a)
	policy := &s.Request.Policy
	policy.Removal = &drain.Removal{}
	policy.Rules = []drain.Rule{{Name: "voters", OwnerKinds: []string{"StatefulSet"}, Quorum: true}}

	losses := map[string]drain.Reason{"scratch": drain.LocalStorage, "replica": "LastReplica", "member-0": "QuorumMember"}
	c.finds(t, d, *policy, losses)
	for pod, allow := range map[string]drain.Removal{"scratch": {AllowLocalData: true}, "replica": {AllowLastReplica: true}, "member-0": {AllowQuorum: true}} {
		allowing, rest := *policy, maps.Clone(losses)
		allowing.Removal = &allow
		delete(rest, pod)
		c.finds(t, d, allowing, rest)
	}
	c.stops(t, d, s, losses)
	if events := audited(t, user); len(events) != 0 {
		t.Errorf("a drain that its preflight stops has written:%s", describe(events))
	}
	if node := c.getNode(t, a); marked(node) || node.Spec.Unschedulable {
		t.Errorf("node %q has annotations %q and unschedulable %t, want it left alone", a, node.Annotations, node.Spec.Unschedulable)
	}

	allowed := drain.Rule{Name: "may go", Behavior: drain.BehaviorEvict, Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"scratch", "replica", "member"}},
	}}}
	policy.Rules = append([]drain.Rule{allowed}, policy.Rules...)
	st := maintain(t, d, s, drain.Drained)
	if n := st.Nodes[0]; n.Outcome != drain.OutcomeDrained || len(n.Evicted) != 4 {
		t.Errorf("with a rule that allows it got %s, want all four pods evicted", inJSON(n))
	}
}

// stops runs a set whose only node has to fail for what would be lost.
func (c *cluster) stops(t *testing.T, d *drain.Drainer, s drain.Set, losses map[string]drain.Reason) {
	t.Helper()
	st, err := start(t, d, s).wait(t)
	must(t, err)
	n := st.Nodes[0]
	named := map[string]drain.Reason{}
	for _, b := range n.Blockers {
		named[b.Name] = b.Reason
	}
	if got, want := resultOf(n), (result{drain.Failed, drain.OutcomeFailed, "DataLoss"}); got != want || !maps.Equal(named, losses) {
		t.Errorf("got %s, want %+v with %v", inJSON(n), want, losses)
	}
}

// finds compares what the preflight of the cluster's node finds.
func (c *cluster) finds(t *testing.T, d *drain.Drainer, policy drain.Policy, want map[string]drain.Reason) {
	t.Helper()
	found, err := d.Preflight(t.Context(), policy, c.name+"-a")
	must(t, err)
	got := map[string]drain.Reason{}
	for _, f := range found {
		if got[f.Name] = f.Reason; f.Reason == "LastReplica" && !strings.Contains(f.Message, `volume "`+c.name+`"`) {
			t.Errorf("%q is not found to be on volume %q: %s", f.Name, c.name, f.Message)
		}
	}
	if !maps.Equal(got, want) || len(found) != len(want) {
		t.Errorf("preflight with %+v: got %v, want %v", policy.Removal, found, want)
	}
}

// keepsData makes the pods that should not be lost with a node, and one that may.
func (c *cluster) keepsData(t *testing.T, node string) {
	t.Helper()
	with := func(source corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: source}} }
	}
	c.localClaim(t, "data", node)
	c.mustPod(t, "scratch", "scratch", node, with(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}))
	c.mustPod(t, "replica", "replica", node, with(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}))
	c.mustPod(t, "plain", "plain", node)
	member := podOf("", "member", "")
	member.Spec.NodeSelector = map[string]string{placeLabel: c.name}
	_, err := c.api.AppsV1().StatefulSets(c.namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "member"},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: member.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: member.ObjectMeta, Spec: member.Spec},
		},
	}, metav1.CreateOptions{})
	must(t, err)
}

// localClaim makes a claim that is bound to a volume on a disk of the node.
func (c *cluster) localClaim(t *testing.T, name, node string) {
	t.Helper()
	room := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	_, err := c.api.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: c.name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: room, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:               &corev1.ObjectReference{Namespace: c.namespace, Name: name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	claims := c.api.CoreV1().PersistentVolumeClaims(c.namespace)
	_, err = claims.Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: modes, StorageClassName: ptr.To(""), Resources: corev1.VolumeResourceRequirements{Requests: room}},
	}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "the claim is bound", func() error {
		claim, err := claims.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && claim.Status.Phase != corev1.ClaimBound {
			err = fmt.Errorf("claim %q is %s", name, claim.Status.Phase)
		}
		return err
	})
}
