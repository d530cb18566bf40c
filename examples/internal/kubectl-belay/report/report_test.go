// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	configsync "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/report"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/internal/golden"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

func now() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }

func at(d time.Duration) metav1.Time { return metav1.NewTime(now().Add(d)) }

func pinned(name string) v1alpha1.PinnedRevision {
	return v1alpha1.PinnedRevision{Name: name, Digest: v1alpha1.OpaqueDigest(name)}
}

// seen is a rollout of v2 over 12 nodes in two zones, at its second stage: node-02 is being drained, and stuck.
func seen(t *testing.T) *view.Seen {
	t.Helper()
	s := &view.Seen{Now: now()}
	for _, name := range []string{"v1", "v2"} {
		s.Revisions = append(s.Revisions, v1alpha1.Revision{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at(-48 * time.Hour)},
			Spec:       v1alpha1.RevisionSpec{Digest: v1alpha1.OpaqueDigest(name), Opaque: name},
		})
	}
	for i := range 12 {
		s.Nodes = append(s.Nodes, node(i))
		s.Shadows = append(s.Shadows, shadow(i))
	}
	s.Nodes[9].Status.Conditions[0].Status = corev1.ConditionFalse
	two := intstr.FromInt32(2)
	r := v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet", UID: "r-1", Generation: 3},
		Spec: v1alpha1.RolloutSpec{
			Domain: "default", Revision: pinned("v2"), Selector: &metav1.LabelSelector{},
			Stages: []v1alpha1.Stage{{Name: "canary", Size: &two, Soak: &metav1.Duration{Duration: time.Hour}}, {Name: "rest"}},
			Caps:   []v1alpha1.Cap{{Scope: v1alpha1.Scope(rollout.Total), Max: two}},
		},
	}
	s.Ledgers = []v1alpha1.DisruptionLedger{{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.DisruptionLedgerSpec{
		Epoch: 3, Count: 1, Slots: []v1alpha1.Slot{{Node: "node-02", UID: "u-02", Attempt: 3, Rollout: "r-1", Keys: []string{"class/Intrusive", "zone/a"}}},
	}}}
	s.Rollouts = []v1alpha1.Rollout{r}
	s.Rollouts[0].Status = statusOf(t, s, &r)
	s.Pods, s.Budgets = work()
	return s
}

// statusOf is what a controller has written.
func statusOf(t *testing.T, s *view.Seen, r *v1alpha1.Rollout) v1alpha1.RolloutStatus {
	t.Helper()
	policy, err := v1alpha1.PolicyOf(r, s.Revision)
	if err != nil {
		t.Fatal(err)
	}
	progress := rollout.Progress{
		Targets: []protocol.Revision{{Name: "v2", Digest: v1alpha1.OpaqueDigest("v2")}}, Stages: []string{"canary", "rest"}, Stage: 1, StageFrom: 2,
		Phase: rollout.Running, Cycles: []time.Duration{8 * time.Minute, 10 * time.Minute},
		Outcomes: []rollout.Outcome{
			{Node: "node-00", UID: "u-00", Result: rollout.Succeeded, At: now().Add(-3 * time.Hour)},
			{Node: "node-01", UID: "u-01", Result: rollout.Succeeded, At: now().Add(-2 * time.Hour)},
		},
		Nodes: map[string]rollout.NodeProgress{"u-02": {
			Node: "node-02", Attempt: 3, State: protocol.Committed, Since: now().Add(-20 * time.Minute), Admitted: now().Add(-21 * time.Minute), Stage: 1,
		}},
	}
	for i := range 12 {
		progress.Members = append(progress.Members, fmt.Sprintf("u-%02d", i))
	}
	before := &rollout.Snapshot{Ledger: v1alpha1.LedgerOf(s.Ledgers[0].Spec), Progress: progress}
	for i, n := range s.Nodes {
		sh := v1alpha1.ShadowOf(&s.Shadows[i])
		seen := rollout.Node{
			Name: n.Name, UID: string(n.UID), Labels: n.Labels, Shadow: &sh, Runs: protocol.ParseRevision(s.Shadows[i].Status.Current.String()),
			Health: rollout.Verdict{Answer: rollout.Allow},
		}
		if !view.Ready(n) {
			seen.Away, seen.Health = "the node is not ready", rollout.Verdict{Answer: rollout.Deny, Reason: "NotReady", Message: "the node is not ready"}
		}
		if i == 2 {
			seen.Drain.Blocked = `pod "shop/cart-0" can't be evicted: budget "cart" allows none`
		}
		before.Nodes = append(before.Nodes, seen)
	}
	d, err := rollout.Plan(*before, policy, now())
	if err != nil {
		t.Fatal(err)
	}
	d.Ledger, d.Progress = before.Ledger, progress // nothing of it was carried out
	status, _ := v1alpha1.StatusOf(r, v1alpha1.Observed{Policy: policy, Decisions: d}, now())
	return status
}

func node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("node-%02d", i), UID: types.UID(fmt.Sprintf("u-%02d", i)), CreationTimestamp: at(-240 * time.Hour),
		Labels: map[string]string{corev1.LabelTopologyZone: string(rune('a' + i%2))},
	}}
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: at(-24 * time.Hour),
	}}
	return n
}

func shadow(i int) v1alpha1.NodeShadow {
	sh := v1alpha1.NodeShadow{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%02d", i)},
		Spec:       v1alpha1.NodeShadowSpec{NodeUID: fmt.Sprintf("u-%02d", i), Domain: "default"},
		Status:     v1alpha1.NodeShadowStatus{Known: true, Revertible: true},
	}
	v1, v2 := &v1alpha1.RevisionRef{Name: "v1", Digest: v1alpha1.OpaqueDigest("v1")}, &v1alpha1.RevisionRef{Name: "v2", Digest: v1alpha1.OpaqueDigest("v2")}
	sh.Status.Current = v1
	if i < 3 {
		k := int64(i + 1)
		sh.Spec.Revision, sh.Spec.Grant, sh.Status.Attempt, sh.Status.Revision = v2, k, k, v2
		sh.Status.Phase = v1alpha1.Phase(protocol.PhaseCommitted)
	}
	if i < 2 {
		sh.Status.Current, sh.Status.Previous, sh.Spec.Proceed, sh.Status.Phase = v2, v1, int64(i+1), v1alpha1.Phase(protocol.PhaseDone)
	}
	sh.Status.Config = &configsync.NodeConfigStatus{
		Active:     &configsync.Config{Display: "kube-system/kubelet-v1"},
		Conditions: []metav1.Condition{{Type: configsync.ConditionConfigOK, Status: metav1.ConditionTrue, Reason: "Passed", Message: "all checks passed", LastTransitionTime: at(-23 * time.Hour)}},
	}
	return sh
}

// work is a pod that can't leave node-02, one that can, and one that nobody drains.
func work() ([]*corev1.Pod, []policyv1.PodDisruptionBudget) {
	pod := func(name, app string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": app}}, Spec: corev1.PodSpec{NodeName: "node-02"}}
	}
	yes := true
	daemon := pod("log-x2", "log")
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "log", Controller: &yes}}
	budget := policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cart"}}},
	}
	return []*corev1.Pod{pod("cart-0", "cart"), pod("web-7", "web"), daemon}, []policyv1.PodDisruptionBudget{budget}
}

// check compares a text with a file, and its width with that of a page.
func check(t *testing.T, name, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > page.Width {
			t.Errorf("%s: a line is wider than %d columns: %s", name, page.Width, line)
		}
	}
	golden.Check(t, name, text)
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + "\n"
}

// The status says how far the rollout is, for people and for programs.
func TestStatus(t *testing.T) {
	s := seen(t)
	st := report.StatusOf(&s.Rollouts[0], s.Revision, now())
	check(t, "status.txt", st.Text()+"\n"+st.Line()+"\n")
	golden.Check(t, "status.json", inJSON(t, st))
	if st.Completed || st.Stands || !st.NeedsSomebody || !st.Current {
		t.Errorf("completed %t, stands %t, needs somebody %t, current %t; want only the first two false: a drain is stuck, and other nodes go on",
			st.Completed, st.Stands, st.NeedsSomebody, st.Current)
	}
	r := s.Rollouts[0].DeepCopy()
	r.Generation, r.Spec.Verb = 4, &v1alpha1.Verb{Request: "pause-1", Do: "Pause"}
	other := v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "databases"}, Spec: v1alpha1.RolloutSpec{Domain: "db"}}
	changed := report.StatusOf(r, s.Revision, now())
	if changed.NeedsSomebody || changed.Completed || changed.Current {
		t.Errorf("a status of the spec before is not to be relied on: %+v", changed)
	}
	fresh := report.StatusOf(&other, s.Revision, now())
	check(t, "statuses.txt", changed.Text()+"\n"+fresh.Text()+"\n"+report.Overview([]report.Status{st, fresh}))
}

// A Rollout that is deleted says what it waits for, and offers no way back, which nothing would come of.
func TestStatusOfADeletedRollout(t *testing.T) {
	s := seen(t)
	r := s.Rollouts[0].DeepCopy()
	r.Status.History = []v1alpha1.HistoryEntry{
		{Number: 1, RolloutTargets: v1alpha1.RolloutTargets{Revision: pinned("v1")}, Result: "Completed", Begun: true},
		{Number: 2, RolloutTargets: v1alpha1.RolloutTargets{Revision: pinned("v2")}, Begun: true},
	}
	if st := report.StatusOf(r, s.Revision, now()); !slices.Contains(st.Verbs, "rollback") {
		t.Errorf("before: it offers %q, want rollback among them", st.Verbs)
	}
	gone := at(-30 * time.Minute)
	r.DeletionTimestamp = &gone
	st := report.StatusOf(r, s.Revision, now())
	if slices.Contains(st.Verbs, "rollback") {
		t.Errorf("it offers %q, want no rollback", st.Verbs)
	}
	check(t, "status-deleted.txt", st.Text())
}

// A node's reason and story are told, whatever it waits for.
func TestWhy(t *testing.T) {
	s := seen(t)
	var all strings.Builder
	for _, name := range []string{"node-00", "node-02", "node-05", "node-09"} {
		all.WriteString(report.WhyOf(s, name, s.Rollouts).Text() + "\n---\n")
	}
	check(t, "why.txt", all.String())
	golden.Check(t, "why.json", inJSON(t, report.WhyOf(s, "node-02", s.Rollouts)))

	s.Rollouts[0].Spec.Revision.Name = "v3"
	s.Shadows = nil
	broken := report.WhyOf(s, "node-05", s.Rollouts)
	check(t, "why-invalid.txt", broken.Text())
}

// A plan says the order, the stages, the time and what can break.
func TestPlan(t *testing.T) {
	s := seen(t)
	s.Rollouts[0].Status.Nodes = nil // the drain is not stuck
	v, err := s.Decide(&s.Rollouts[0])
	if err != nil {
		t.Fatal(err)
	}
	sim, err := rollout.Simulate(v.Snapshot, v.Policy, now(), rollout.Assumptions{Cycle: 30 * time.Minute, WorstCycle: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	p := report.PlanOf(v, sim, now())
	check(t, "plan.txt", p.Text(false))
	golden.Check(t, "plan.json", inJSON(t, p))
}

// The history is in order, and two revisions are compared field by field.
func TestHistory(t *testing.T) {
	s := seen(t)
	r := &s.Rollouts[0]
	ended := at(-time.Hour)
	r.Status.History = []v1alpha1.HistoryEntry{
		{Number: 4, RolloutTargets: v1alpha1.RolloutTargets{Revision: pinned("v1")}, By: "jane", Started: at(-30 * time.Hour), Ended: &ended, Result: v1alpha1.HistoryCompleted,
			Counts: &v1alpha1.RolloutCounts{Selected: 12, Done: 12}},
		{Number: 5, RolloutTargets: v1alpha1.RolloutTargets{Revision: pinned("v0")}, Started: at(-20 * time.Hour), Ended: &ended, Result: v1alpha1.HistorySuperseded,
			Counts: &v1alpha1.RolloutCounts{Selected: 12, Done: 3, Failed: 1}, FailedNodes: []string{"node-03"}, Irreversible: true},
		{Number: 6, RolloutTargets: v1alpha1.RolloutTargets{Revision: pinned("v2")}, Started: at(-time.Hour), RollbackTo: 2},
	}
	check(t, "history.txt", report.HistoryOf(r).Text())
	d, err := report.EntriesDiffer(t.Context(), r, s.Revisions, 4, 6, nil)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "difference.txt", d.Text())
	for number, want := range map[int64]string{7: "only 4 to 6", 5: `Revision "v0" with digest`} {
		if _, err := report.EntriesDiffer(t.Context(), r, s.Revisions, 4, number, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("comparing with entry %d: %v, want %q", number, err, want)
		}
	}
}

// A rollback is offered with the entry and the revision that it goes to, and only where it would be carried out.
func TestRollbackIsOffered(t *testing.T) {
	s := seen(t)
	r := &s.Rollouts[0]
	entry := func(number int64, name string, result v1alpha1.HistoryResult) v1alpha1.HistoryEntry {
		return v1alpha1.HistoryEntry{Number: number, RolloutTargets: v1alpha1.RolloutTargets{Revision: pinned(name)}, Result: result, Begun: true}
	}
	for _, c := range []struct {
		name    string
		history []v1alpha1.HistoryEntry
		want    string
	}{
		{"after another one", []v1alpha1.HistoryEntry{entry(1, "v1", "Completed"), entry(2, "v2", "")}, "kubectl belay rollback fleet --to=1"},
		{"the demo's end", []v1alpha1.HistoryEntry{entry(1, "v1", "Completed"), entry(2, "v2", "Superseded"), entry(3, "v1", "Completed")}, ""},
		{"its Revision is gone", []v1alpha1.HistoryEntry{entry(1, "v0", "Completed"), entry(2, "v2", "")}, ""},
	} {
		r.Status.History = c.history
		st, back := report.StatusOf(r, s.Revision, now()), ""
		if st.Back != nil {
			back = st.Back.Line("fleet")
		}
		if text := st.Text(); back != c.want || slices.Contains(st.Verbs, "rollback") != (c.want != "") || strings.Contains(text, "rollback") != (c.want != "") {
			t.Errorf("%s: %q is offered, want %q; verbs %q:\n%s", c.name, back, c.want, st.Verbs, text)
		}
		if _, err := report.BackOf(r, s.Revision); err != nil && !strings.Contains(err.Error(), "--to") {
			t.Errorf("%s: with nothing to go back to: %v", c.name, err)
		}
		if c.want != "" {
			check(t, "status-back.txt", st.Text())
		}
	}
	r.Status.History[1].Irreversible = true
	if st := report.StatusOf(r, s.Revision, now()); st.Back != nil {
		t.Errorf("what is irreversible is gone back from: %+v", st.Back)
	}
}

// What came of a request is what the status says, and a pause is over only when it is proven.
func TestAnswer(t *testing.T) {
	v := v1alpha1.Verb{Request: "pause-2", Do: "Pause"}
	before := v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "fleet", UID: "r", Generation: 2}}
	before.Status.Phase = "Running"
	for _, c := range []struct {
		name    string
		change  func(*v1alpha1.Rollout)
		outcome report.Outcome
		final   bool
	}{
		{"nothing yet", func(*v1alpha1.Rollout) {}, report.Unanswered, false},
		{"refused", func(r *v1alpha1.Rollout) { r.Status.HandledRequest, r.Status.Refusal = v.Request, "it is over" }, report.Refused, true},
		{"not proven", func(r *v1alpha1.Rollout) { r.Status.HandledRequest = v.Request }, report.CarriedOut, false},
		{"proven", func(r *v1alpha1.Rollout) { r.Status.HandledRequest, r.Status.Acknowledged = v.Request, true }, report.CarriedOut, true},
		{"displaced", func(r *v1alpha1.Rollout) {
			r.Spec.Verb, r.Generation = &v1alpha1.Verb{Request: "abort-3", Do: "Abort"}, 4
		}, report.Displaced, true},
		{"not asked yet", func(r *v1alpha1.Rollout) { r.Spec.Verb = &v1alpha1.Verb{Request: "resume-1", Do: "Resume"} }, report.Unanswered, false},
	} {
		r := before.DeepCopy()
		r.Spec.Verb = &v
		c.change(r)
		a := report.AnswerOf(&before, r, v, now())
		if a.Outcome != c.outcome || a.Final != c.final {
			t.Errorf("%s: outcome %s, final %t; want %s, %t", c.name, a.Outcome, a.Final, c.outcome, c.final)
		}
		check(t, "answer-"+strings.ReplaceAll(c.name, " ", "-")+".txt", a.Text())
	}
}
