// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package pagetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/examples/internal/controller/page"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A Fleet is a [page.Source] that a test changes. Its methods may be called at the same time.
type Fleet struct {
	mu    sync.Mutex
	seen  view.Seen
	pods  []*corev1.Pod // of node 2
	blind bool
	deaf  time.Time // when it was heard from last; zero while it is
	looks int
}

var _ page.Source = (*Fleet)(nil)

// New is the fleet of [Seen] of n nodes, at the present time, which stands still.
func New(t testing.TB, n int) *Fleet {
	t.Helper()
	pods, _ := WorkOn(NodeName(2))
	return &Fleet{seen: *Seen(t, n, time.Now().Truncate(time.Second)), pods: pods}
}

// Seen implements [page.Source].
func (f *Fleet) Seen() (*view.Seen, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	s := f.seen
	s.Shadows = slices.Clone(s.Shadows)
	return &s, !f.blind
}

// On implements [page.Source].
func (f *Fleet) On(node string) ([]*corev1.Pod, []policyv1.PodDisruptionBudget) {
	pods, budgets := WorkOn(node)
	if pods == nil {
		return nil, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pods, budgets
}

// Heard implements [page.Source].
func (f *Fleet) Heard() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deaf.IsZero() {
		return time.Now()
	}
	return f.deaf
}

// Deaf has the API server be heard from last at that time; zero has it be heard from again.
func (f *Fleet) Deaf(since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deaf = since
}

// Drained has the pod leave that is on the node that is being drained. Nothing else tells of that: the model stays as it is.
func (f *Fleet) Drained() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods = nil
}

// Runs has a node say that it runs a revision.
func (f *Fleet) Runs(node int, revision string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen.Shadows[node].Status.Current = Ref(revision)
}

// Says has the controller say something of the rollout.
func (f *Fleet) Says(message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen.Rollouts = slices.Clone(f.seen.Rollouts)
	f.seen.Rollouts[0].Status.Message = message
}

// Blind has the fleet be not seen whole, or seen again.
func (f *Fleet) Blind(blind bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blind = blind
}

// Looks is how often it was looked at.
func (f *Fleet) Looks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.looks
}

// NodeName is the name of the node of that number.
func NodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

func uid(i int) string { return fmt.Sprintf("u-%04d", i) }

// Ref is the revision of that name, as nodes run it.
func Ref(name string) *v1alpha1.RevisionRef {
	return &v1alpha1.RevisionRef{Name: name, Digest: v1alpha1.OpaqueDigest(name)}
}

// Seen is a rollout of v2 over n nodes, 12 at least, at its second stage, as it is now: 0 and 1 are done, 2 is being drained, 3 is broken, 4 has
// failed and rests, 5 is not ready, 6 has no agent, 7 runs something else that is called v1, and the last one is not selected. Of 24 nodes or more,
// those from 12 on in the first half are done, too, and one of a hundred after them is in flight.
func Seen(t testing.TB, n int, now time.Time) *view.Seen {
	t.Helper()
	s := &view.Seen{Now: now}
	for _, name := range []string{"v1", "v2"} {
		s.Revisions = append(s.Revisions, v1alpha1.Revision{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-48 * time.Hour))},
			Spec:       v1alpha1.RevisionSpec{Digest: v1alpha1.OpaqueDigest(name), Opaque: name},
		})
	}
	for i := range n {
		s.Nodes = append(s.Nodes, nodeOf(i, now))
		s.Shadows = append(s.Shadows, shadowOf(i, n))
	}
	s.Nodes[5].Status.Conditions[0].Status = corev1.ConditionFalse
	s.Shadows[6].Status = v1alpha1.NodeShadowStatus{}
	s.Shadows[7].Status.Current.Digest = v1alpha1.OpaqueDigest("other")
	s.Nodes[n-1].Labels["pool"] = "other"
	s.Ledgers = []v1alpha1.DisruptionLedger{{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.DisruptionLedgerSpec{
		Epoch: int64(n + 5), Count: 2, Slots: []v1alpha1.Slot{
			{Node: NodeName(2), UID: uid(2), Attempt: 3, Rollout: "r-1", Keys: []string{"zone/a"}},
			{Node: NodeName(3), UID: uid(3), Attempt: 4, Rollout: "r-1", Keys: []string{"zone/b"}, State: v1alpha1.SlotState(protocol.SlotSuspect)},
		},
	}}}
	for i := half(n); i < half(n)+flying(n); i++ {
		slots := &s.Ledgers[0].Spec.Slots
		*slots = append(*slots, v1alpha1.Slot{Node: NodeName(i), UID: uid(i), Attempt: int64(i + 1), Rollout: "r-1", Keys: []string{"zone/" + zone(i)}})
		s.Ledgers[0].Spec.Count++
	}
	s.Rollouts = []v1alpha1.Rollout{rolloutOf(n)}
	describe(t, s, &s.Rollouts[0], progressOf(n, now))
	return s
}

// half is where the nodes end that are done, flying how many are in flight after them.
func half(n int) int   { return max(12, n/2) }
func flying(n int) int { return n / 100 }

func rolloutOf(n int) v1alpha1.Rollout {
	two, limit := intstr.FromInt32(2), intstr.FromInt(2+flying(n))
	return v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet", UID: "r-1", Generation: 3},
		Spec: v1alpha1.RolloutSpec{
			Domain: "default", Revision: v1alpha1.PinnedRevision{Name: "v2", Digest: v1alpha1.OpaqueDigest("v2")},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "main"}},
			Stages:   []v1alpha1.Stage{{Name: "canary", Size: &two}, {Name: "rest"}},
			Caps:     []v1alpha1.Cap{{Scope: v1alpha1.Scope(rollout.Total), Max: limit}},
		},
	}
}

// describe has the status be what a controller has written.
func describe(t testing.TB, s *view.Seen, r *v1alpha1.Rollout, progress rollout.Progress) {
	t.Helper()
	policy, err := v1alpha1.PolicyOf(r, s.Revision)
	if err != nil {
		t.Fatal(err)
	}
	ledger := v1alpha1.LedgerOf(s.Ledgers[0].Spec)
	r.Status, _ = v1alpha1.StatusOf(r, v1alpha1.Observed{Policy: policy, Decisions: rollout.Decisions{Phase: progress.Phase, Ledger: ledger, Progress: progress}}, s.Now)
	v, err := s.Decide(r)
	if err != nil {
		t.Fatal(err)
	}
	d := v.Decisions
	d.Ledger, d.Progress = ledger, progress // nothing of it was carried out
	r.Status, _ = v1alpha1.StatusOf(r, v1alpha1.Observed{Policy: policy, Decisions: d}, s.Now)
}

func progressOf(n int, now time.Time) rollout.Progress {
	p := rollout.Progress{
		Targets: []protocol.Revision{{Name: "v2", Digest: v1alpha1.OpaqueDigest("v2")}}, Stages: []string{"canary", "rest"}, Stage: 1, StageFrom: 2,
		Phase: rollout.Running, Cycles: []time.Duration{8 * time.Minute, 10 * time.Minute},
		Outcomes: []rollout.Outcome{
			{Node: NodeName(0), UID: uid(0), Result: rollout.Succeeded, At: now.Add(-3 * time.Hour)},
			{Node: NodeName(1), UID: uid(1), Result: rollout.Succeeded, At: now.Add(-2 * time.Hour)},
		},
		Nodes: map[string]rollout.NodeProgress{
			uid(2): {Node: NodeName(2), Attempt: 3, State: protocol.Committed, Since: now.Add(-20 * time.Minute), Admitted: now.Add(-21 * time.Minute), Stage: 1},
			uid(3): {Node: NodeName(3), Attempt: 4, State: protocol.Applying, Since: now.Add(-50 * time.Minute), Admitted: now.Add(-51 * time.Minute), Stage: 1},
			uid(4): {
				Node: NodeName(4), Attempt: 5, State: protocol.FailedClean, Result: rollout.FailedClean, Attempts: 1, Failed: true, Stage: 1,
				NotBefore: now.Add(time.Hour),
			},
		},
	}
	for i := range n - 1 {
		p.Members = append(p.Members, uid(i))
	}
	for i := 12; i < half(n); i++ {
		p.Outcomes = append(p.Outcomes, rollout.Outcome{Node: NodeName(i), UID: uid(i), Result: rollout.Succeeded, At: now.Add(time.Duration(i-n) * time.Second)})
		p.Cycles = append(p.Cycles, 9*time.Minute)
	}
	p.Cycles = p.Cycles[:min(len(p.Cycles), 50)] // as many as a controller remembers at most
	for i := half(n); i < half(n)+flying(n); i++ {
		p.Nodes[uid(i)] = rollout.NodeProgress{
			Node: NodeName(i), Attempt: protocol.Attempt(i + 1), State: protocol.State(phaseOf(i)), Since: now.Add(-3 * time.Minute),
			Admitted: now.Add(-5 * time.Minute), Stage: 1,
		}
	}
	return p
}

// phaseOf is how far a node in flight is.
func phaseOf(i int) protocol.Phase {
	return []protocol.Phase{protocol.PhaseCommitted, protocol.PhaseApplying, protocol.PhaseVerifying}[i%3]
}

func zone(i int) string { return string(rune('a' + i%2)) }

func nodeOf(i int, now time.Time) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: NodeName(i), UID: types.UID(uid(i)), CreationTimestamp: metav1.NewTime(now.Add(-240 * time.Hour)),
		Labels: map[string]string{corev1.LabelTopologyZone: zone(i), "pool": "main"},
	}}
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: metav1.NewTime(now.Add(-24 * time.Hour)),
	}}
	return n
}

func shadowOf(i, n int) v1alpha1.NodeShadow {
	sh := v1alpha1.NodeShadow{
		ObjectMeta: metav1.ObjectMeta{Name: NodeName(i)},
		Spec:       v1alpha1.NodeShadowSpec{NodeUID: uid(i), Domain: "default"},
		Status:     v1alpha1.NodeShadowStatus{Known: true, Revertible: true, Current: Ref("v1")},
	}
	var phase protocol.Phase
	switch {
	case i < 5:
		phase = []protocol.Phase{protocol.PhaseDone, protocol.PhaseDone, protocol.PhaseCommitted, protocol.PhaseApplying, protocol.PhaseFailedClean}[i]
	case i >= 12 && i < half(n):
		phase = protocol.PhaseDone
	case i >= half(n) && i < half(n)+flying(n):
		phase = phaseOf(i)
	default:
		return sh
	}
	k := int64(i + 1)
	sh.Spec.Revision, sh.Spec.Grant, sh.Status.Attempt, sh.Status.Revision = Ref("v2"), k, k, Ref("v2")
	sh.Status.Phase = v1alpha1.Phase(phase)
	if phase != protocol.PhaseCommitted {
		sh.Spec.Proceed = k
	}
	if phase == protocol.PhaseDone || phase == protocol.PhaseVerifying {
		sh.Status.Current, sh.Status.Previous = Ref("v2"), Ref("v1")
	}
	return sh
}

// WorkOn is what is on the node that is being drained.
func WorkOn(node string) ([]*corev1.Pod, []policyv1.PodDisruptionBudget) {
	if node != NodeName(2) {
		return nil, nil
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-0", Labels: map[string]string{"app": "cart"}}, Spec: corev1.PodSpec{NodeName: node}}
	budget := policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cart"}}},
	}
	return []*corev1.Pod{pod}, []policyv1.PodDisruptionBudget{budget}
}
