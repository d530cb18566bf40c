// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
)

// TestDeploymentAdopts: sets without an owner are taken over before anything else; a restored deployment does it when somebody says so.
func TestDeploymentAdopts(t *testing.T) {
	d := pool(3)
	s, machines := setOf(d, "v1.36.0", 3)
	orphan := s
	orphan.Owner = machine.Owner{}
	got := machine.DecideDeployment(deploymentView(d, []machine.Set{orphan}, machines))
	if !slices.Equal(names(got.Adopt), []string{s.Name}) || got.Create != nil || len(got.Update) > 0 {
		t.Errorf("an orphan: %+v", got)
	}
	lost := s
	lost.Owner.UID = "of the cluster before"
	v := deploymentView(d, []machine.Set{lost}, machines)
	if got = machine.DecideDeployment(v); len(got.Adopt) > 0 || got.Create != nil || !strings.Contains(got.Status.Message, `is "d-uid"`) {
		t.Errorf("restored: %+v", got)
	}
	v.Deployment.Annotations = map[string]string{machine.AdoptedAnnotation: "d-uid"}
	if got = machine.DecideDeployment(v); len(got.Adopt) != 1 || got.Create != nil {
		t.Errorf("restored, and looked at: %+v", got)
	}
	v = deploymentView(d, nil)
	v.Restored = true
	if got = machine.DecideDeployment(v); got.Create != nil {
		t.Errorf("restored without sets: %+v", got)
	}
	other := s
	other.Owner, other.Namespace = machine.Owner{}, "x"
	if got = machine.DecideDeployment(deploymentView(d, []machine.Set{other})); len(got.Adopt) > 0 || got.Create == nil {
		t.Errorf("one of another namespace: %+v", got)
	}
}

// TestInvalidDeployment: what no rollout can be done with is a failure that names the field, and nothing is done.
func TestInvalidDeployment(t *testing.T) {
	for want, change := range map[string]func(*machine.Deployment){
		"spec.replicas is -1":      func(d *machine.Deployment) { d.Spec.Replicas = -1 },
		"selector":                 func(d *machine.Deployment) { d.Spec.Template.Labels = nil },
		"or the selector is empty": func(d *machine.Deployment) { d.Spec.Selector = nil },
		"spec.strategy.type is":    func(d *machine.Deployment) { d.Spec.Strategy.Type = "Recreate" },
		"spec.strategy.maxSurge":   func(d *machine.Deployment) { d.Spec.Strategy.MaxSurge.Value = -1 },
		"spec.strategy.maxUnavailable": func(d *machine.Deployment) {
			d.Spec.Strategy.MaxUnavailable = machine.Amount{Value: 101, Percent: true}
		},
	} {
		d := pool(3)
		change(&d)
		old, machines := setOf(pool(3), "v1.36.0", 3)
		got := machine.DecideDeployment(deploymentView(d, []machine.Set{old}, machines))
		if f := got.Status.Failure; f == nil || f.Reason != machine.ReasonInvalidTemplate || !strings.Contains(f.Message, want) {
			t.Errorf("%s: failure %+v", want, f)
		}
		if got.Create != nil || len(got.Update) > 0 {
			t.Errorf("%s: %+v", want, got)
		}
	}
	for what, change := range map[string]func(*machine.Deployment){
		"no UID": func(d *machine.Deployment) { d.UID = "" }, "being deleted": func(d *machine.Deployment) { d.Deleted = noon },
	} {
		d := pool(3)
		change(&d)
		if got := machine.DecideDeployment(deploymentView(d, nil)); got.Create != nil || !strings.Contains(got.Status.Message, what) {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// TestHistory: old sets without machines are kept as wanted, the newest ones.
func TestHistory(t *testing.T) {
	for history, want := range map[int]int{0: 0, -1: 3, 1: 2, 2: 1, 9: 0} {
		d := pool(1)
		d.Spec.Template, d.Spec.History = template("v1.36.9"), history
		current, machines := setOf(d, "v1.36.9", 1)
		sets := []machine.Set{current}
		for i := range 3 {
			old, _ := setOf(d, fmt.Sprintf("v1.36.%d", i), 0, held)
			sets = append(sets, old)
		}
		busy, others := setOf(d, "v1.36.3", 1, held)
		busy.Spec.Replicas = 0
		deleted(&others[0])
		got := machine.DecideDeployment(deploymentView(d, append(sets, busy), machines, others))
		if len(got.Delete) != want || want > 0 && (got.Delete[0].UID != "set-v1.36.0" || got.Delete[0].Version != "v-v1.36.0") {
			t.Errorf("history %d: %+v, want %d deleted", history, got.Delete, want)
		}
	}
	d := pool(1)
	d.Spec.History = -1
	current, machines := setOf(d, "v1.36.1", 1)
	waiting, _ := setOf(d, "v1.36.0", 0, held, func(s *machine.Set) { s.Status.Reserved = reserved(1) })
	if got := machine.DecideDeployment(deploymentView(d, []machine.Set{current, waiting}, machines)); len(got.Delete) > 0 {
		t.Errorf("one with a reservation: %+v", got.Delete)
	}
}

// TestSetsFollow: what a set has of its deployment beside the template is no reason for a rollout.
func TestSetsFollow(t *testing.T) {
	d := pool(1)
	s, machines := setOf(d, "v1.36.1", 1)
	d.Spec.Order, d.Spec.MaxProvisioning, d.Spec.MinReady = machine.NewestFirst, 7, time.Minute
	got := machine.DecideDeployment(deploymentView(d, []machine.Set{s}, machines))
	if len(got.Update) != 1 || got.Create != nil {
		t.Fatalf("%+v", got)
	}
	if n := got.Update[0].Set; n.Spec.Order != machine.NewestFirst || n.Spec.MaxProvisioning != 7 || n.Spec.MinReady != time.Minute || n.Version != s.Version {
		t.Errorf("set: %+v", n)
	}
}

// TestStalled: a rollout that stands still says so, with the reason, and the time while it is paused does not count. R-MA-28.
func TestStalled(t *testing.T) {
	d := pool(3)
	d.Spec.Deadline = 10 * time.Minute
	old, machines := setOf(d, "v1.36.0", 3, held)
	next, fresh := setOf(d, "v1.36.1", 1)
	notJoined(&fresh[0])
	v := deploymentView(d, []machine.Set{old, next}, machines, fresh)
	got := machine.DecideDeployment(v)
	if !got.Status.Progressed.Equal(noon) || got.Status.Failure != nil || got.After != 10*time.Minute {
		t.Fatalf("at first: %+v, after %s", got.Status, got.After)
	}
	v.Deployment.Status, v.Now = got.Status, noon.Add(9*time.Minute)
	if got = machine.DecideDeployment(v); got.Store || got.Status.Failure != nil || got.After != time.Minute {
		t.Errorf("9 minutes later: %+v, after %s", got.Status, got.After)
	}
	v.Now = noon.Add(10 * time.Minute)
	got = machine.DecideDeployment(v)
	if f := got.Status.Failure; f == nil || f.Reason != machine.ReasonStalled || !strings.Contains(f.Message, "3 machines work of 4") {
		t.Fatalf("10 minutes later: %+v", f)
	}
	v.Deployment.Status, v.Now = got.Status, noon.Add(20*time.Minute)
	if got = machine.DecideDeployment(v); got.Store {
		t.Errorf("later: %+v is stored over %+v", got.Status, v.Deployment.Status)
	}
	v.Deployment.Generation++
	if got = machine.DecideDeployment(v); got.Status.Failure != nil || !got.Status.Progressed.Equal(v.Now) {
		t.Errorf("after an edit: %+v", got.Status)
	}
}

// TestSkewStopsTheTemplate: a template that must not run gets no set, and the machines that are there go on at the size that is wanted. R-MA-13.
func TestSkewStopsTheTemplate(t *testing.T) {
	d := pool(3)
	old, machines := setOf(d, "v1.36.0", 3)
	v := deploymentView(d, []machine.Set{old}, machines)
	v.Skew = machine.Skew("v1.35.0", "v1.36.1")
	got := machine.DecideDeployment(v)
	if f := got.Status.Failure; got.Create != nil || updates(got) != "" || f == nil || f.Reason != machine.ReasonVersionSkew || !strings.Contains(f.Message, "newer") {
		t.Fatalf("%+v, sets %q", got, updates(got))
	}
	if got.Status.Updated != 0 || got.Status.Available != 3 || got.Status.Revision != 1 {
		t.Errorf("status: %+v", got.Status)
	}
	v.Deployment.Spec.Replicas = 5
	if got = machine.DecideDeployment(v); updates(got) != "0=5" {
		t.Errorf("5 wanted: %s", updates(got))
	}
	v.Deployment.Spec.Replicas = 2
	if got = machine.DecideDeployment(v); updates(got) != "0=2" {
		t.Errorf("2 wanted: %s", updates(got))
	}
	if got = machine.DecideDeployment(machine.DeploymentView{Deployment: d, Now: noon, Live: true, Skew: "too new"}); got.Create != nil {
		t.Errorf("without sets: %+v", got)
	}
}

// TestAmounts: shares are rounded up for a surge and down for what may be missing, as in apps/v1.
func TestAmounts(t *testing.T) {
	for _, c := range []struct {
		text         string
		of, up, down int
	}{
		{"0", 9, 0, 0}, {"3", 9, 3, 3}, {"0%", 9, 0, 0}, {"25%", 4, 1, 1}, {"25%", 3, 1, 0}, {"25%", 5, 2, 1}, {"34%", 3, 2, 1}, {"100%", 7, 7, 7}, {"1%", 0, 0, 0},
		{"1%", 1, 1, 0}, {"100%", math.MaxInt32, math.MaxInt32, math.MaxInt32},
	} {
		a, err := machine.ParseAmount(c.text)
		if err != nil || a.String() != c.text || a.Up(c.of) != c.up || a.Down(c.of) != c.down {
			t.Errorf("%s of %d: %v, up %d, down %d, %v; want %d, %d", c.text, c.of, a, a.Up(c.of), a.Down(c.of), err, c.up, c.down)
		}
	}
	for _, text := range []string{"", "%", "-1", "101%", "+1", "01", "1.5", "1 %", "1%%", "x", "99999999999999999999"} {
		if a, err := machine.ParseAmount(text); err == nil || !strings.Contains(err.Error(), "want a number") {
			t.Errorf("ParseAmount(%q) = %v, %v", text, a, err)
		}
	}
	if n := (machine.Amount{Value: -5}).Up(3) + (machine.Amount{Value: -5, Percent: true}).Down(3); n != 0 {
		t.Errorf("a negative amount is %d machines", n)
	}
}
