// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// R-RO-19: of a Rollout that can't be followed the verb is known all the same.
func TestVerbOfAnInvalidRollout(t *testing.T) {
	r := rolloutOf(t, "verb: {request: stop-1, do: Abort}")
	p, err := v1alpha1.PolicyOf(r, shelfOf("v1").find)
	want := rollout.Policy{UID: "uid-r", Verb: rollout.Verb{Request: "stop-1", Do: rollout.Abort}}
	if err == nil || !reflect.DeepEqual(p, want) {
		t.Errorf("without its Revision: got %+v, %v, want %+v and an error", p, err, want)
	}
	r = rolloutOf(t, "verb: {request: stop-1, do: Abort}\nattempts: -1")
	if p, err = v1alpha1.PolicyOf(r, shelfOf("v2").find); err == nil || !reflect.DeepEqual(p, want) {
		t.Errorf("with a policy that is not valid: got %+v, %v, want %+v and an error", p, err, want)
	}
}

// R-RO-19, R-RO-32: a Rollout that was stopped though its policy can't be followed says both, and remembers what has come of it.
func TestStoppedStatus(t *testing.T) {
	r := rolloutOf(t, "pauseLimit: 3h")
	r.Status, _ = decided(t, r, rollout.Decisions{Phase: rollout.Running, Message: "m"}, epoch())
	r.Status = stored(t, r.Status)
	for _, c := range []struct {
		phase       rollout.Phase
		stopped     string
		after       time.Duration
		want, again string
	}{
		{rollout.Running, "", 0, "Running, not acknowledged, true: ", "0s"}, // it was refused
		{rollout.Paused, "q", time.Hour, "Paused, acknowledged, true: Paused", "3h0m0s"},
		{rollout.Paused, "q", 4 * time.Hour, "Paused, acknowledged, true: Paused Stalled", "5h0m0s"},
		{rollout.Aborted, "q", 4 * time.Hour, "Aborted, acknowledged, true: Paused", "5h0m0s"},
	} {
		d := rollout.Decisions{Phase: c.phase, Message: "no such revision; all the same", Acknowledged: true, After: 5 * time.Hour}
		d.Progress = rollout.Progress{Phase: c.phase, Stopped: c.stopped, Handled: "q", Refused: "maybe"}
		s, again := v1alpha1.StoppedStatus(r, d, epoch().Add(c.after))
		r.Status = stored(t, s)
		acknowledged := map[bool]string{true: "acknowledged", false: "not acknowledged"}[s.Acknowledged]
		if got := fmt.Sprintf("%s, %s, true: %s", s.Phase, acknowledged, truths(t, s)); got != c.want || again.String() != c.again {
			t.Errorf("%s after %s: got %s, again in %s; want %s, in %s", c.phase, c.after, got, again, c.want, c.again)
		}
		valid := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionValid)
		got := []string{valid.Message, s.Reason, s.Message, s.HandledRequest, s.Refusal, s.Progress.Stopped}
		if want := []string{d.Message, v1alpha1.ReasonInvalid, d.Message, "q", "maybe", c.stopped}; !slices.Equal(got, want) {
			t.Errorf("%s after %s: got %q, want %q", c.phase, c.after, got, want)
		}
	}
}

// R-RO-31: a node that joins while an entry of the history is followed gets what that was, and not the revision that was completed last: somebody goes back from it.
func TestRollbackCountsAsCompleted(t *testing.T) {
	d := newDesk(t, "groups: [{name: g, nodes: [a], revision: {name: x, digest: y}}, {name: h, selector: {}}]", "v1", "v2", "g1", "g2")
	policy := func() rollout.Policy {
		t.Helper()
		p, err := v1alpha1.PolicyOf(d.r, d.at.find)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	to := func(v, own string) {
		p := pinned(own)
		d.r.Spec.Groups[0].Revision = &p
		d.to(v)
		d.s.Nodes[0].Runs = inPolicyRef(own)
		d.s.Nodes[1].Runs = inPolicyRef(v)
		d.pass()
	}
	to("v1", "g1")
	if to("v2", "g2"); d.r.Status.Completed == nil || d.r.Status.Completed.Revision != pinned("v2") {
		t.Fatalf("got %+v completed, want v2", d.r.Status.Completed)
	}
	if p := policy(); p.Completed.Name != "v2" || p.Groups[0].Completed == nil || p.Groups[0].Completed.Name != "g2" {
		t.Errorf("before: got %q and %+v completed, want v2 and g2", p.Completed.Name, p.Groups[0].Completed)
	}
	d.rollback("q", 1)
	p := policy()
	if p.Target.Name != "v1" || p.Completed.Name != "v1" || p.Groups[0].Completed == nil || p.Groups[0].Completed.Name != "g1" {
		t.Errorf("while v1 is gone back to: got %q and %+v completed, want v1 and g1", p.Completed.Name, p.Groups[0].Completed)
	}
}
