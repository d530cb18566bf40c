// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testenv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A desk is a Rollout that somebody looks after: it is read, decided on and stored.
type desk struct {
	t   *testing.T
	r   *v1alpha1.Rollout
	at  shelf
	s   rollout.Snapshot
	now time.Time
}

func newDesk(t *testing.T, spec string, revisions ...string) *desk {
	t.Helper()
	d := &desk{t: t, r: rolloutOf(t, spec), at: shelfOf(revisions...), now: epoch()}
	for _, name := range []string{"a", "b"} {
		d.s.Nodes = append(d.s.Nodes, rollout.Node{
			Name: name, UID: "uid-" + name, Health: rollout.Verdict{Answer: rollout.Allow},
			Shadow: &protocol.Shadow{Node: name, UID: "uid-" + name, Report: protocol.Report{Known: true}},
		})
	}
	return d
}

// pass looks at the rollout once.
func (d *desk) pass() v1alpha1.RolloutStatus {
	d.t.Helper()
	d.now = d.now.Add(time.Minute)
	d.r.Status = stored(d.t, d.r.Status)
	heeded := v1alpha1.HeedRollback(d.r, d.at.find)
	policy, err := v1alpha1.PolicyOf(heeded, d.at.find)
	if err != nil {
		d.t.Fatal(err)
	}
	if d.s.Progress, err = v1alpha1.ProgressOf(heeded.Status); err != nil {
		d.t.Fatal(err)
	}
	decisions, err := rollout.Plan(d.s, policy, d.now)
	if err != nil {
		d.t.Fatal(err)
	}
	d.r.Status, _ = v1alpha1.StatusOf(heeded, v1alpha1.Observed{Policy: policy, Decisions: decisions}, d.now)
	return d.r.Status
}

// to names another revision.
func (d *desk) to(name string) v1alpha1.RolloutStatus {
	d.t.Helper()
	d.r.Spec.Revision = pinned(name)
	return d.pass()
}

// run has all nodes run a revision.
func (d *desk) run(name string) v1alpha1.RolloutStatus {
	d.t.Helper()
	for i := range d.s.Nodes {
		d.s.Nodes[i].Runs = inPolicyRef(name)
	}
	return d.pass()
}

func (d *desk) rollback(request string, number int64) v1alpha1.RolloutStatus {
	d.t.Helper()
	d.r.Spec.Verb = &v1alpha1.Verb{Request: request, Do: v1alpha1.DoRollback, Number: number}
	return d.pass()
}

// lines are the entries in words.
func lines(s v1alpha1.RolloutStatus) string {
	var all []string
	for _, e := range s.History {
		line := fmt.Sprintf("%d %s", e.Number, e.Revision.Name)
		if e.RollbackTo > 0 {
			line += fmt.Sprintf(" (as %d)", e.RollbackTo)
		}
		if e.Ended != nil {
			line += fmt.Sprintf(" %s after %s", e.Result, e.Ended.Sub(e.Started.Time))
		}
		all = append(all, line)
	}
	return strings.Join(all, ", ")
}

func (d *desk) want(what, history string) {
	d.t.Helper()
	if got := lines(d.r.Status); got != history {
		d.t.Errorf("%s: got %s, want %s", what, got, history)
	}
}

// R-RO-29: the history says what the rollout was about, since when, who has asked for it, and how it ended.
func TestHistory(t *testing.T) {
	d := newDesk(t, "", "v1", "v2", "v3", "v4")
	d.r.Annotations = map[string]string{v1alpha1.RequestedByAnnotation: "ada"}
	d.to("v1")
	d.want("begun", "1 v1")
	d.run("v1")
	d.want("done", "1 v1 Completed after 1m0s")
	d.r.Annotations = nil
	d.r.ManagedFields = []metav1.ManagedFieldsEntry{
		managed("kubectl-edit", 30, `{"f:spec":{"f:caps":{}}}`), managed("gitops", 20, `{"f:spec":{"f:revision":{"f:name":{}}}}`),
		managed("before", 10, `{"f:spec":{"f:revision":{"f:name":{}}}}`), managed("broken", 40, `7`),
	}
	d.to("v2")
	d.pass()
	d.want("another one", "1 v1 Completed after 1m0s, 2 v2")
	s := d.to("v3")
	d.want("superseded", "1 v1 Completed after 1m0s, 2 v2 Superseded after 2m0s, 3 v3")
	if by := []string{s.History[0].By, s.History[1].By}; !reflect.DeepEqual(by, []string{"ada", "gitops"}) {
		t.Errorf("got asked for by %q, want ada and gitops", by)
	}
	if s.Completed == nil || s.Completed.Revision != pinned("v1") || s.Revision == nil || *s.Revision != pinned("v3") {
		t.Errorf("got %+v completed and %v under way, want v1 and v3", s.Completed, s.Revision)
	}
	if e := s.History[0]; e.Counts.Done != 2 || e.Counts.Selected != 2 || !e.Begun {
		t.Errorf("entry 1 has counts %+v, begun %t, want 2 of 2 done", e.Counts, e.Begun)
	}
	d.r.Spec.HistoryLimit = 2
	d.to("v4")
	d.want("limited", "3 v3 Superseded after 1m0s, 4 v4")
}

func managed(by string, at int64, fields string) metav1.ManagedFieldsEntry {
	when := metav1.Unix(at, 0)
	owned, err := testenv.FieldsV1(fields)
	if err != nil {
		panic(err)
	}
	return metav1.ManagedFieldsEntry{Manager: by, Time: &when, FieldsV1: owned}
}

// R-RO-29: an entry names the nodes on which its revision has failed, and how many of them there were.
func TestHistoryNamesFailedNodes(t *testing.T) {
	var p rollout.Progress
	var want []string
	for i := range 2 * v1alpha1.MaxFailedNodes {
		name := fmt.Sprintf("n%02d", i)
		o := rollout.Outcome{Node: name, UID: name, Result: rollout.FailedClean}
		if i%2 > 0 {
			o.Result = rollout.Succeeded
		} else if want = append(want, name); i == 0 {
			p.Outcomes = append(p.Outcomes, o) // another incarnation
		}
		p.Outcomes = append(p.Outcomes, o)
	}
	if got := statusOf(t, v1alpha1.RolloutStatus{}, p).History[0].FailedNodes; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	p.Outcomes = append(p.Outcomes, p.Outcomes[0], rollout.Outcome{Node: "z", Result: rollout.Lost})
	if got := statusOf(t, v1alpha1.RolloutStatus{}, p).History[0].FailedNodes; !reflect.DeepEqual(got, want) {
		t.Errorf("with more than fit: got %q, want %q", got, want)
	}
}

// R-RO-29: a rollback by number is a new entry with the old revision. It goes on until the spec names another one.
func TestRollbackByNumber(t *testing.T) {
	d := newDesk(t, "", "v1", "v2", "v3")
	d.to("v1")
	d.run("v1")
	d.to("v2")
	s := d.rollback("back-1", 1)
	const after = "1 v1 Completed after 1m0s, 2 v2 Superseded after 1m0s, 3 v1 (as 1) Completed after 0s"
	d.want("gone back", after)
	if *s.Revision != pinned("v1") || s.Rollback == nil || s.HandledRequest != "back-1" || s.Refusal != "" || s.Phase != "Completed" {
		t.Errorf("got %v by %+v, handled %q, refused %q, want v1 again", s.Revision, s.Rollback, s.HandledRequest, s.Refusal)
	}
	if p, err := v1alpha1.PolicyOf(d.r, d.at.find); err != nil || p.Order == nil {
		t.Errorf("the policy of a rollback has no order of its own, %v", err)
	}
	d.pass()
	d.want("the same request once more", after)
	d.r.Spec.Verb = nil
	d.pass()
	d.want("the request is gone", after)
	s = d.rollback("forth", 2)
	d.want("back to what the spec says", after+", 4 v2 (as 2)")
	if *s.Revision != pinned("v2") {
		t.Errorf("got %v, want v2", s.Revision)
	}
	d.rollback("back-2", 1)
	s = d.to("v3")
	if p, err := v1alpha1.PolicyOf(d.r, d.at.find); *s.Revision != pinned("v3") || s.Rollback != nil || err != nil || p.Order != nil {
		t.Errorf("after the spec has named v3: got %v by %+v, an order of its own: %t, %v", s.Revision, s.Rollback, p.Order != nil, err)
	}
	if s = d.to("v2"); *s.Revision != pinned("v2") || s.Rollback != nil {
		t.Errorf("after the spec has named v2 again: got %v by %+v: an old rollback comes back", s.Revision, s.Rollback)
	}
}

// A rollback that was not stored is done again, and changes nothing in what it was decided on.
func TestRollbackIsPure(t *testing.T) {
	d := newDesk(t, "", "v1", "v2")
	d.to("v1")
	d.to("v2")
	d.r.Spec.Verb = &v1alpha1.Verb{Request: "q", Do: v1alpha1.DoRollback, Number: 1}
	before := d.r.DeepCopy()
	first, again := v1alpha1.HeedRollback(d.r, d.at.find), v1alpha1.HeedRollback(d.r, d.at.find)
	if !reflect.DeepEqual(d.r, before) || !reflect.DeepEqual(first, again) || first.Status.Rollback == nil {
		t.Errorf("got %+v, then %+v; the rollout itself is %+v, was %+v", first.Status, again.Status, d.r.Status, before.Status)
	}
	if third := v1alpha1.HeedRollback(first, d.at.find); third != first {
		t.Errorf("the request was handled, and is handled again: %+v", third.Status)
	}
	fresh := newDesk(t, "", "v2")
	if s := fresh.rollback("q", 1); s.HandledRequest != "q" || s.Refusal != "the history has no entry 1: it is empty" || *s.Revision != pinned("v2") {
		t.Errorf("in a new rollout: got %v, handled %q, refused %q", s.Revision, s.HandledRequest, s.Refusal)
	}
}

// R-RO-21, R-RO-29: a rollback that is not possible is refused with the reason before a node is touched, and changes nothing else.
func TestRollbackIsRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		number  int64
		prepare func(d *desk)
		want    string
	}{
		{"unknown", 9, func(*desk) {}, "the history has no entry 9, only 1 to 3"},
		{"present", 3, func(*desk) {}, `entry 3 is what the rollout is about already: "v3"`},
		{"irreversible", 1, func(d *desk) { d.r.Status.History[1].Irreversible = true }, `entry 2, revision "v2", is irreversible and was begun`},
		{"irreversible but never begun", 1, func(d *desk) {
			d.r.Status.History[1].Irreversible, d.r.Status.History[1].Begun = true, false
		}, ""},
		{"to an irreversible one", 2, func(d *desk) { d.r.Status.History[1].Irreversible = true }, ""},
		{"revision gone", 1, func(d *desk) { delete(d.at, "v1") }, `revision.name of entry 1 is "v1", want the name of a Revision that there is`},
		{"other digest", 1, func(d *desk) { d.at["v1"].Spec.Digest = "sha256:x" }, "revision.digest of entry 1 is"},
		{"other content", 1, func(d *desk) { d.at["v1"].Spec.Opaque = "x" }, "revision.digest of entry 1 is"},
		{"own revision since", 1, func(d *desk) {
			own := pinned("v3")
			d.r.Spec.Selector = nil
			d.r.Spec.Groups = []v1alpha1.Group{{Name: "g", Nodes: []string{"a"}, Revision: &own}, {Name: "h", Selector: &metav1.LabelSelector{}}}
		}, `group "g" has a revision of its own, and had none in entry 1: change spec.groups instead`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, "", "v1", "v2", "v3")
			for _, v := range []string{"v1", "v2", "v3"} {
				d.to(v)
				d.run(v)
			}
			d.r.Generation = 8
			c.prepare(d)
			s := d.rollback("q", c.number)
			if !strings.HasPrefix(s.Refusal, c.want) || (c.want == "") != (s.Refusal == "") || s.HandledRequest != "q" {
				t.Errorf("got %q refused with %q, want %q", s.HandledRequest, s.Refusal, c.want)
			}
			if refused := s.Rollback == nil && *s.Revision == pinned("v3"); refused != (c.want != "") {
				t.Errorf("got %v by %+v", s.Revision, s.Rollback)
			}
		})
	}
}

// Groups that have their own revisions go back to those that they had.
func TestRollbackOfGroups(t *testing.T) {
	d := newDesk(t, "groups: [{name: g, nodes: [a], revision: {name: x, digest: y}}, {name: h, selector: {}}]", "v1", "v2", "g1", "g2")
	own := func(name string) {
		p := pinned(name)
		d.r.Spec.Groups[0].Revision = &p
	}
	own("g1")
	d.to("v1")
	own("g2")
	d.to("v2")
	s := d.rollback("q", 1)
	p, err := v1alpha1.PolicyOf(d.r, d.at.find)
	if err != nil || p.Target.Name != "v1" || p.Groups[0].Target == nil || p.Groups[0].Target.Name != "g1" {
		t.Errorf("got %+v, %v, refused %q, want v1 and g1", p.Groups, err, s.Refusal)
	}
	delete(d.at, "g1")
	if _, err := v1alpha1.PolicyOf(d.r, d.at.find); err == nil || !strings.HasPrefix(err.Error(), `status.rollback.groups["g"].revision.name is "g1"`) {
		t.Errorf("a revision that is gone since: got %v, want it named", err)
	}
	d.at["g1"] = opaque("g1")
	nobody := &metav1.LabelSelector{MatchLabels: map[string]string{"nobody": "here"}}
	d.r.Spec.Groups = append(d.r.Spec.Groups, v1alpha1.Group{Name: "i", Selector: nobody})
	slices.Reverse(d.r.Spec.Groups)
	if d.pass(); d.r.Status.Rollback == nil {
		t.Error("the rollback ends though the spec names the same revisions for the same groups")
	}
	slices.Reverse(d.r.Spec.Groups)
	own("v2")
	if s := d.pass(); s.Rollback != nil || s.History[len(s.History)-1].Groups[0].Revision != pinned("v2") {
		t.Errorf("after the group has another revision: got %+v by %+v", s.History, s.Rollback)
	}
}

// A group that there is no more takes no part in a rollback, and does not end it.
func TestRollbackOfAGroupThatIsGone(t *testing.T) {
	d := newDesk(t, "groups: [{name: g, nodes: [a], revision: {name: x, digest: y}}, {name: h, selector: {}}]", "v1", "v2", "g1")
	own := pinned("g1")
	d.r.Spec.Groups[0].Revision = &own
	d.to("v1")
	d.r.Spec.Groups = d.r.Spec.Groups[1:]
	d.to("v2")
	delete(d.at, "g1")
	d.rollback("q", 1)
	if s := d.pass(); s.Refusal != "" || s.Rollback == nil || *s.Revision != pinned("v1") || !strings.HasSuffix(s.Message, "the spec is not") {
		t.Errorf("got %v by %+v, refused %q: %s; want v1, and that the spec is not followed", s.Revision, s.Rollback, s.Refusal, s.Message)
	}
}

// R-RO-21: the way back has stages and caps of its own, if the spec has a plan for it, and those of the rollout where it has none; errors name the field.
func TestRollbackHasItsOwnPlan(t *testing.T) {
	const spec = "stages: [{name: canary, size: 1, approval: true}, {name: all}]\ncaps: [{scope: Total, max: 1}]\n"
	for _, c := range []struct {
		name, back, stages string
		most               string
	}{
		{"none", "", "canary all", "1"},
		{"empty", "rollback: {}\n", "", "1"},
		{"stages", "rollback: {stages: [{name: one, size: 1}, {name: rest}]}\n", "one rest", "1"},
		{"caps", "rollback: {caps: [{scope: Total, max: 50%}]}\n", "", "50%"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, spec+c.back, "v1", "v2", "v3")
			d.to("v1")
			d.to("v2")
			if got := d.plan(); got != "canary all at most 1" {
				t.Errorf("before: got %q, want the plan of the rollout", got)
			}
			d.rollback("back", 1)
			if got, want := d.plan(), c.stages+" at most "+c.most; got != want {
				t.Errorf("on the way back: got %q, want %q", got, want)
			}
			if d.to("v3"); d.plan() != "canary all at most 1" {
				t.Errorf("after: got %q, want the plan of the rollout", d.plan())
			}
		})
	}
	d := newDesk(t, spec+"rollback: {stages: [{name: x, groups: [nobody]}]}\n", "v1", "v2")
	d.to("v1")
	d.to("v2")
	d.r.Spec.Verb = &v1alpha1.Verb{Request: "back", Do: v1alpha1.DoRollback, Number: 1}
	_, err := v1alpha1.PolicyOf(v1alpha1.HeedRollback(d.r, d.at.find), d.at.find)
	if err == nil || !strings.HasPrefix(err.Error(), `spec.rollback.stages[0].groups[0] is "nobody"`) {
		t.Errorf("an unknown group: got %v, want the field named", err)
	}
}

// plan is the stages and the cap that hold now.
func (d *desk) plan() string {
	d.t.Helper()
	p, err := v1alpha1.PolicyOf(d.r, d.at.find)
	if err != nil {
		d.t.Fatal(err)
	}
	var names []string
	for _, s := range p.Stages {
		names = append(names, s.Name)
	}
	return fmt.Sprintf("%s at most %s", strings.Join(names, " "), &p.Caps[0].Max)
}
