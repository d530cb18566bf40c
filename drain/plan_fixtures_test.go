// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
)

// planStart is when the drains of these tests began.
func planStart() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

// A planCase is what a test gives to Plan.
type planCase struct {
	drain.Snapshot
	policy drain.Policy
	now    time.Time
}

// newPlanCase has one node with the given pods, a minute after its drain began.
func newPlanCase(pods ...*corev1.Pod) *planCase {
	c := &planCase{now: planStart().Add(time.Minute)}
	c.addNode("n1", pods...)
	return c
}

func (c *planCase) addNode(name string, pods ...*corev1.Pod) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: "host-" + name}}}
	c.Nodes = append(c.Nodes, drain.NodeView{Node: node, Pods: pods, Started: planStart()})
}

func (c *planCase) addBudgets(budgets ...*policyv1.PodDisruptionBudget) {
	c.Budgets = append(c.Budgets, budgets...)
}

// after moves the clock to a time after the start.
func (c *planCase) after(d time.Duration) { c.now = planStart().Add(d) }

func (c *planCase) plan() drain.Result { return drain.Plan(c.Snapshot, c.policy, c.now) }

// refusedAt has the server refuse the first eviction of each pod of the first node, a while after the start.
func (c *planCase) refusedAt(d time.Duration) {
	c.Nodes[0].Asked = map[types.UID]time.Time{}
	for _, p := range c.Nodes[0].Pods {
		c.Nodes[0].Asked[p.UID] = planStart().Add(d)
	}
}

// pod returns the decision about the pod of that name.
func (c *planCase) pod(t *testing.T, name string) drain.PodPlan {
	t.Helper()
	for _, n := range c.plan().Nodes {
		if i := slices.IndexFunc(n.Pods, func(p drain.PodPlan) bool { return p.Name == name }); i >= 0 {
			return n.Pods[i]
		}
	}
	t.Fatalf("the plan has no pod %q", name)
	return drain.PodPlan{}
}

// want checks the decision about a pod; parts are to stand in its message.
func (c *planCase) want(t *testing.T, name string, action drain.Action, reason drain.Reason, parts ...string) drain.PodPlan {
	t.Helper()
	p := c.pod(t, name)
	if p.Action != action || p.Reason != reason {
		t.Errorf("pod %q: got %s %q (%s), want %s %q", name, p.Action, p.Reason, p.Message, action, reason)
	}
	for _, part := range parts {
		if !strings.Contains(p.Message, part) {
			t.Errorf("pod %q: got message %q, want %q in it", name, p.Message, part)
		}
	}
	return p
}

// wantNext checks when the plan of the first node changes by itself, counted from the start; negative is never.
func (c *planCase) wantNext(t *testing.T, after time.Duration) {
	t.Helper()
	want := planStart().Add(after)
	if after < 0 {
		want = time.Time{}
	}
	if got := c.plan().Nodes[0].Next; !got.Equal(want) {
		t.Errorf("next change: got %v, want %v", got, want)
	}
}

type podOption func(*corev1.Pod)

// planPod is a pod that nothing holds: running, ready, of a ReplicaSet.
func planPod(name string, options ...podOption) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"}},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	ownedBy("ReplicaSet", "web-1")(pod)
	for _, o := range options {
		o(pod)
	}
	return pod
}

func ownedBy(kind, name string) podOption {
	yes := true
	api := "apps/v1"
	if kind == "Node" {
		api = "v1"
	}
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: api, Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: &yes}}
	}
}

func unowned(p *corev1.Pod) { p.OwnerReferences = nil }

func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func inPhase(phase corev1.PodPhase) podOption { return func(p *corev1.Pod) { p.Status.Phase = phase } }

func inNamespace(ns string) podOption { return func(p *corev1.Pod) { p.Namespace = ns } }

func labeled(key, value string) podOption { return func(p *corev1.Pod) { p.Labels[key] = value } }

func annotated(key, value string) podOption {
	return func(p *corev1.Pod) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[key] = value
	}
}

// deletedAt is a pod whose grace period ends a while after the start of the drain.
func deletedAt(after time.Duration) podOption {
	return func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: planStart().Add(after)} }
}

func tolerating(t corev1.Toleration) podOption {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

func toleratingAll(p *corev1.Pod) {
	tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})(p)
}

// withEmptyDir adds a volume; an empty limit is none.
func withEmptyDir(name, limit string) podOption {
	return func(p *corev1.Pod) {
		source := &corev1.EmptyDirVolumeSource{}
		if limit != "" {
			q := resource.MustParse(limit)
			source.SizeLimit = &q
		}
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: source}})
	}
}

func withClaim(name string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
}

type budgetOption func(*policyv1.PodDisruptionBudget)

// planBudget is for the pods of the app of that name, with a status as the disruption controller writes it.
func planBudget(app string, minAvailable, healthy, expected int32, options ...budgetOption) *policyv1.PodDisruptionBudget {
	minimum := intstr.FromInt32(minAvailable)
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app, Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &minimum, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, CurrentHealthy: healthy, DesiredHealthy: minAvailable,
			ExpectedPods: expected, DisruptionsAllowed: max(0, healthy-minAvailable)},
	}
	for _, o := range options {
		o(b)
	}
	return b
}

func alwaysAllow(b *policyv1.PodDisruptionBudget) {
	p := policyv1.AlwaysAllow
	b.Spec.UnhealthyPodEvictionPolicy = &p
}

func ifHealthy(b *policyv1.PodDisruptionBudget) {
	p := policyv1.IfHealthyBudget
	b.Spec.UnhealthyPodEvictionPolicy = &p
}

func stale(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }

// withMaxUnavailable replaces the budget's minimum, in its spec alone.
func withMaxUnavailable(v string) budgetOption {
	m := intstr.Parse(v)
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, &m }
}

func withMinAvailable(v string) budgetOption {
	m := intstr.Parse(v)
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = &m }
}

func matchingAll(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} }
