// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

func check(change ...func(*machine.HealthSpec)) machine.HealthCheck {
	c := machine.HealthCheck{
		Key: key("check"), UID: "check-uid", Generation: 5,
		Spec: machine.HealthSpec{Selector: map[string]string{"pool": "a"}, MaxUnhealthy: machine.Amount{Value: 100, Percent: true}},
	}
	for _, f := range change {
		f(&c.Spec)
	}
	return c
}

func healthView(c machine.HealthCheck, machines ...machine.Machine) machine.HealthView {
	return machine.HealthView{Check: c, Now: noon, Machines: machines, Nodes: allReady(machines), NodesKnown: true, Budget: 9, CanReboot: true, CanRestartAgent: true}
}

func remedies(d machine.HealthDecision) string {
	var all []string
	for _, r := range d.Remedies {
		all = append(all, r.Name+":"+string(r.Kind))
	}
	return strings.Join(all, " ")
}

func nodeIs(kind, status string, since time.Duration) func(*machine.HealthView) {
	return func(v *machine.HealthView) { v.Nodes[key("a")] = conditions(kind, status, noon.Add(-since)) }
}

func machineIs(f ...func(*machine.Machine)) func(*machine.HealthView) {
	return func(v *machine.HealthView) {
		for _, f := range f {
			f(&v.Machines[0])
		}
	}
}

func stepIs(name machine.StepName, since time.Duration) func(*machine.Machine) {
	return func(m *machine.Machine) { m.Node, m.Step = nil, machine.Step{Name: name, Since: noon.Add(-since)} }
}

func failedWith(reason string) func(*machine.Machine) {
	return func(m *machine.Machine) {
		m.Failure = &machine.Failure{Reason: reason, Message: "x", Since: noon.Add(-time.Hour)}
	}
}

func unknownNodes(v *machine.HealthView) { v.NodesKnown, v.Nodes = false, nil }

// A diagnosis is one of the situations of TestDiagnosis.
type diagnosis struct {
	name   string
	is     string // h, u, or neither
	after  time.Duration
	change []func(*machine.HealthView)
}

func diagnoses() []diagnosis {
	return []diagnosis{
		{name: "works", is: "h"},
		{name: "not ready for too long", is: "u", change: []func(*machine.HealthView){nodeIs("Ready", "False", 10*time.Minute)}},
		{name: "kubelet silent for too long", is: "u", change: []func(*machine.HealthView){nodeIs("Ready", "Unknown", 10*time.Minute)}},
		{name: "not ready for a while", after: time.Minute, change: []func(*machine.HealthView){nodeIs("Ready", "False", 9*time.Minute)}},
		{name: "no condition", change: []func(*machine.HealthView){nodeIs("Other", "True", time.Hour)}},
		{name: "workload cluster can't be asked", change: []func(*machine.HealthView){unknownNodes}},
		{name: "workload cluster can't be asked, stale conditions", change: []func(*machine.HealthView){
			nodeIs("Ready", "Unknown", time.Hour), func(v *machine.HealthView) { v.NodesKnown = false }}},
		{name: "no Node, and the cluster can't be asked", change: []func(*machine.HealthView){machineIs(stepIs(machine.StepJoining, time.Hour)), unknownNodes}},
		{name: "Node not seen", change: []func(*machine.HealthView){func(v *machine.HealthView) { v.Nodes = nil }}},
		{name: "Node gone", is: "u", change: []func(*machine.HealthView){func(v *machine.HealthView) {
			v.Nodes[key("a")] = machine.NodeHealth{Gone: true, Since: noon.Add(-10 * time.Minute)}
		}}},
		{name: "Node gone just now", after: 4 * time.Minute, change: []func(*machine.HealthView){func(v *machine.HealthView) {
			v.Nodes[key("a")] = machine.NodeHealth{Gone: true, Since: noon.Add(-6 * time.Minute), Conditions: conditions("Ready", "True", noon).Conditions}
		}}},
		{name: "does not join", is: "u", change: []func(*machine.HealthView){machineIs(stepIs(machine.StepJoining, 10*time.Minute))}},
		{name: "joins", after: 8 * time.Minute, change: []func(*machine.HealthView){machineIs(stepIs(machine.StepJoining, 2*time.Minute))}},
		{name: "is created for too long", is: "u", change: []func(*machine.HealthView){machineIs(stepIs(machine.StepCreating, 0))}},
		{name: "is created again", after: 10 * time.Minute, change: []func(*machine.HealthView){machineIs(stepIs(machine.StepCreating, 0),
			func(m *machine.Machine) { m.Incarnation = 2 })}},
	}
}

func diagnosesMore() []diagnosis {
	return []diagnosis{
		{name: "can't be made", change: []func(*machine.HealthView){machineIs(stepIs(machine.StepCreating, time.Hour), failedWith(string(provider.Stockout)))}},
		{name: "lost", is: "u", change: []func(*machine.HealthView){machineIs(failedWith(machine.ReasonInstanceLost)), unknownNodes}},
		{name: "broken", is: "u", change: []func(*machine.HealthView){machineIs(failedWith(machine.ReasonInstanceBroken))}},
		{name: "another failure", is: "h", change: []func(*machine.HealthView){machineIs(failedWith(machine.ReasonUnsupportedChange))}},
		{name: "in quarantine", change: []func(*machine.HealthView){nodeIs("Ready", "False", time.Hour), machineIs(annotated(machine.QuarantineAnnotation, ""))}},
		{name: "paused", change: []func(*machine.HealthView){nodeIs("Ready", "False", time.Hour), machineIs(func(m *machine.Machine) { m.Spec.Paused = true })}},
		{name: "decommissioned", change: []func(*machine.HealthView){nodeIs("Ready", "False", time.Hour), machineIs(decommissioned)}},
		{name: "in an update", change: []func(*machine.HealthView){nodeIs("Ready", "False", time.Hour),
			machineIs(func(m *machine.Machine) { m.Update = &machine.Update{Drained: true} })}},
		{name: "other rule", is: "u", change: []func(*machine.HealthView){nodeIs("DiskPressure", "True", time.Minute), func(v *machine.HealthView) {
			v.Check.Spec.Unhealthy = []machine.UnhealthyWhen{{Condition: "DiskPressure", Status: "True", For: time.Minute}}
		}}},
		{name: "other rule, not for long", after: time.Second, change: []func(*machine.HealthView){nodeIs("DiskPressure", "True", time.Minute), func(v *machine.HealthView) {
			v.Check.Spec.Unhealthy = []machine.UnhealthyWhen{{Condition: "DiskPressure", Status: "True", For: 61 * time.Second}}
		}}},
		{name: "phase", is: "u", change: []func(*machine.HealthView){machineIs(func(m *machine.Machine) { m.Phase = machine.PhaseFailed }), func(v *machine.HealthView) {
			v.Check.Spec.Unhealthy = []machine.UnhealthyWhen{{Phase: machine.PhaseFailed, For: 50 * time.Minute}}
		}}},
		{name: "phase, not for long", after: 20 * time.Minute, change: []func(*machine.HealthView){
			machineIs(func(m *machine.Machine) { m.Phase = machine.PhaseFailed },
				func(m *machine.Machine) {
					m.Failure = &machine.Failure{Reason: "x", Since: noon.Add(-30 * time.Minute)}
				}),
			func(v *machine.HealthView) {
				v.Check.Spec.Unhealthy = []machine.UnhealthyWhen{{Phase: machine.PhaseFailed, For: 50 * time.Minute}}
			}}},
	}
}

// TestDiagnosis: what makes a machine healthy, unhealthy, and neither.
func TestDiagnosis(t *testing.T) {
	for _, c := range slices.Concat(diagnoses(), diagnosesMore()) {
		t.Run(c.name, func(t *testing.T) {
			v := healthView(check(), member(poolSet(1), "a"))
			for _, f := range c.change {
				f(&v)
			}
			d := machine.DecideHealth(v)
			is := strings.Repeat("h", d.Status.Healthy) + strings.Repeat("u", d.Status.Unhealthy)
			if is != c.is || d.Status.Expected != 1 || (len(d.Remedies) > 0) != (c.is == "u") {
				t.Errorf("%q, want %q; %+v", is, c.is, d)
			}
			if c.is == "" && d.After != c.after {
				t.Errorf("looks again after %s, want %s", d.After, c.after)
			}
		})
	}
}

// sick is a view with one machine that has been unhealthy for an hour.
func sick(c machine.HealthCheck, change ...func(*machine.Machine)) machine.HealthView {
	v := healthView(c, member(poolSet(1), "a", change...))
	v.Nodes[key("a")] = conditions("Ready", "False", noon.Add(-30*time.Minute))
	return v
}

// later is the view after a decision was stored, some time later.
func later(v machine.HealthView, d machine.HealthDecision, by time.Duration) machine.HealthView {
	v.Check.Status, v.Now = d.Status, v.Now.Add(by)
	return v
}

// TestLadder: one remedy after the other, each with its tries and its time, the same ID in each pass, and an end.
func TestLadder(t *testing.T) {
	v := sick(check(func(s *machine.HealthSpec) {
		s.Ladder = []machine.Rung{{Kind: machine.RemedyRestartAgent, Tries: 2, Wait: time.Minute}, {Kind: machine.RemedyReboot}, {Kind: machine.RemedyQuarantine}}
	}))
	d := machine.DecideHealth(v)
	if remedies(d) != "a:RestartAgent" || !d.Store || len(d.Status.Attempts) != 1 || d.After != 0 {
		t.Fatalf("first: %+v", d)
	}
	id := d.Remedies[0].ID
	v = later(v, d, 59*time.Second)
	if d = machine.DecideHealth(v); remedies(d) != "a:RestartAgent" || d.Remedies[0].ID != id || d.Store || d.After != time.Second {
		t.Errorf("while it is given time: %+v", d)
	}
	v = later(v, d, time.Second)
	if d = machine.DecideHealth(v); remedies(d) != "a:RestartAgent" || d.Remedies[0].ID == id {
		t.Errorf("second try: %+v", d)
	}
	v = later(v, d, time.Minute)
	if d = machine.DecideHealth(v); remedies(d) != "a:Reboot" {
		t.Errorf("second rung: %+v", d)
	}
	v = later(v, d, machine.DefaultWait)
	if d = machine.DecideHealth(v); remedies(d) != "a:Quarantine" || d.Remedies[0].Annotations[machine.QuarantineAnnotation] == "" {
		t.Errorf("third rung: %+v", d)
	}
}

// TestEndOfTheLadder: nothing more is done, for ever, unless the ladder gets longer.
func TestEndOfTheLadder(t *testing.T) {
	v := sick(check(func(s *machine.HealthSpec) { s.Ladder = []machine.Rung{{Kind: machine.RemedyQuarantine}} }))
	v = later(v, machine.DecideHealth(v), machine.DefaultWait)
	d := machine.DecideHealth(v)
	if remedies(d) != "" || len(d.Skipped) != 1 || !strings.Contains(d.Skipped[0].Reason, "nothing has helped") || !d.Store {
		t.Errorf("at the end: %+v", d)
	}
	v = later(v, d, 100*time.Hour)
	if d = machine.DecideHealth(v); remedies(d) != "" || d.Store || !strings.Contains(d.Skipped[0].Reason, "nothing has helped") {
		t.Errorf("for ever: %+v", d)
	}
	v.Check.Spec.Ladder = append(v.Check.Spec.Ladder, machine.Rung{Kind: machine.RemedyReboot})
	if d = machine.DecideHealth(v); remedies(d) != "a:Reboot" {
		t.Errorf("with a longer ladder: %+v", d)
	}
}

// TestCooldown: a remedy has helped when the machine was healthy for a while; before that the ladder is climbed further.
func TestCooldown(t *testing.T) {
	v := sick(check(func(s *machine.HealthSpec) { s.Cooldown = 5 * time.Minute }))
	d := machine.DecideHealth(v)
	if remedies(d) != "a:Reboot" {
		t.Fatalf("first: %+v", d)
	}
	ready := func(v machine.HealthView, status string, since time.Time) machine.HealthView {
		v.Nodes = map[machine.Key]machine.NodeHealth{key("a"): conditions("Ready", status, since)}
		return v
	}
	v = ready(later(v, d, 12*time.Minute), "True", noon)
	d = machine.DecideHealth(v)
	if len(d.Remedies) != 0 || len(d.Status.Attempts) != 1 || d.After != 5*time.Minute || !d.Store {
		t.Fatalf("healthy: %+v", d)
	}
	flapped := ready(later(v, d, 4*time.Minute), "False", noon)
	if f := machine.DecideHealth(flapped); remedies(f) != "a:Replace" {
		t.Errorf("unhealthy again in its cooldown: %+v", f)
	}
	between := ready(later(v, d, 4*time.Minute), "False", noon.Add(16*time.Minute))
	b := machine.DecideHealth(between)
	if len(b.Remedies) != 0 || !b.Status.Attempts[0].Healthy.IsZero() {
		t.Errorf("not healthy for a moment: %+v", b.Status)
	}
	unseen := later(v, d, 4*time.Minute)
	unseen.NodesKnown = false
	if u := machine.DecideHealth(unseen); u.Status.Attempts[0].Healthy.IsZero() {
		t.Errorf("not seen for a moment: %+v", u.Status)
	}
	v = later(v, d, 5*time.Minute)
	if d = machine.DecideHealth(v); len(d.Status.Attempts) != 0 || !d.Store {
		t.Errorf("healthy for long enough: %+v", d.Status)
	}
	v = ready(later(v, d, time.Hour), "False", noon)
	if d = machine.DecideHealth(v); remedies(d) != "a:Reboot" {
		t.Errorf("unhealthy much later: %+v", d)
	}
}

// A heldBack is one of the situations of TestRemediesHeldBack.
type heldBack struct {
	name    string
	machine func(*machine.Machine)
	change  func(*machine.HealthView)
	want    string
	why     string
	stored  int
}

func heldBackCases() []heldBack {
	return []heldBack{
		{name: "none", want: "a:Replace", stored: 1},
		{name: "paused", change: func(v *machine.HealthView) { v.Check.Spec.Paused = true }, why: "paused"},
		{name: "no budget", change: func(v *machine.HealthView) { v.Budget = 0 }, why: "disruption budget"},
		{name: "too many", change: func(v *machine.HealthView) { v.Check.Spec.MaxUnhealthy = machine.Amount{Percent: true} }, why: "1 of 1 machines are unhealthy, more than 0%"},
		{name: "nonsense", change: func(v *machine.HealthView) { v.Check.Spec.MaxUnhealthy = machine.Amount{Value: -1} }, why: "spec.maxUnhealthy"},
		{name: "no set", machine: func(m *machine.Machine) { m.Owner = machine.Owner{} }, why: "no set", stored: 1},
		{name: "control plane", machine: roles("control-plane"), why: "spec.decommission", stored: 1},
		{name: "third in a row", machine: annotated(machine.LineageAnnotation, "3"), why: "3 machines in a row", stored: 1},
		{name: "second in a row", machine: annotated(machine.LineageAnnotation, "2"), want: "a:Replace", stored: 1},
		{name: "third, and worked for long", machine: func(m *machine.Machine) {
			annotated(machine.LineageAnnotation, "3")(m)
			m.Created = noon.Add(-9 * time.Hour)
		}, want: "a:Replace", stored: 1},
		{name: "third, old, and never joined", machine: func(m *machine.Machine) {
			annotated(machine.LineageAnnotation, "3")(m)
			notJoined(m)
			m.Created, m.Step.Since = noon.Add(-9*time.Hour), noon.Add(-9*time.Hour)
		}, why: "3 machines in a row", stored: 1},
		{name: "can't reboot", change: func(v *machine.HealthView) {
			v.Check.Spec.Ladder, v.CanReboot = []machine.Rung{{Kind: machine.RemedyReboot}}, false
		}, why: `"Reboot" can't be had`, stored: 1},
		{name: "can't restart agents", change: func(v *machine.HealthView) {
			v.Check.Spec.Ladder, v.CanRestartAgent = []machine.Rung{{Kind: machine.RemedyRestartAgent}, {Kind: machine.RemedyReplace}}, false
		}, want: "a:Replace", stored: 1},
		{name: "unknown remedy", change: func(v *machine.HealthView) { v.Check.Spec.Ladder[0].Kind = "Pray" }, why: "can't be had", stored: 1},
		{name: "agent needs no budget", change: func(v *machine.HealthView) {
			v.Check.Spec.Ladder, v.Budget = []machine.Rung{{Kind: machine.RemedyRestartAgent}}, 0
		}, want: "a:RestartAgent", stored: 1},
		{name: "not selected", machine: func(m *machine.Machine) { m.Labels = nil }},
		{name: "empty selector", change: func(v *machine.HealthView) { v.Check.Spec.Selector = nil }},
		{name: "other namespace", machine: func(m *machine.Machine) { m.Namespace = "x" }},
		{name: "deleted", machine: deleted},
	}
}

// TestRemediesHeldBack: what keeps a remedy from being begun, each with its reason. R-MA-26, R-MA-28.
func TestRemediesHeldBack(t *testing.T) {
	for _, c := range slices.Concat(heldBackCases()) {
		t.Run(c.name, func(t *testing.T) {
			v := sick(check(func(s *machine.HealthSpec) { s.Ladder = []machine.Rung{{Kind: machine.RemedyReplace}} }))
			if c.machine != nil {
				c.machine(&v.Machines[0])
			}
			if c.change != nil {
				c.change(&v)
			}
			d := machine.DecideHealth(v)
			if remedies(d) != c.want || len(d.Status.Attempts) != c.stored {
				t.Errorf("remedies %q, %d attempts; want %q, %d", remedies(d), len(d.Status.Attempts), c.want, c.stored)
			}
			if (len(d.Skipped) > 0) != (c.why != "") || c.why != "" && !strings.Contains(d.Skipped[0].Reason, c.why) {
				t.Errorf("skipped: %+v, want %q", d.Skipped, c.why)
			}
		})
	}
}

// TestOneBudget: remedies that disrupt share what is left, and what is under way keeps its own.
func TestOneBudget(t *testing.T) {
	s := poolSet(4)
	v := healthView(check(), member(s, "a"), member(s, "b"), member(s, "c"), member(s, "d"))
	for k := range v.Nodes {
		v.Nodes[k] = conditions("Ready", "False", noon.Add(-time.Hour))
	}
	v.Budget = 2
	d := machine.DecideHealth(v)
	if remedies(d) != "a:Reboot b:Reboot" || !slices.Equal(names(d.Skipped), []string{"c", "d"}) {
		t.Fatalf("2 of 4: %s, skipped %v", remedies(d), names(d.Skipped))
	}
	v = later(v, d, time.Minute)
	v.Budget = 0
	if d = machine.DecideHealth(v); remedies(d) != "a:Reboot b:Reboot" {
		t.Errorf("under way: %s", remedies(d))
	}
}

// TestShortCircuit: with too many unhealthy machines nothing is begun, and nothing that was begun goes on. The zero value is a fifth.
func TestShortCircuit(t *testing.T) {
	s := poolSet(10)
	var all []machine.Machine
	for _, n := range "abcdefghij" {
		all = append(all, member(s, string(n)))
	}
	for _, c := range []struct {
		limit machine.Amount
		most  int
	}{{machine.Amount{}, 2}, {machine.Amount{Value: 3}, 3}, {machine.Amount{Value: 35, Percent: true}, 4}, {machine.Amount{Value: 100, Percent: true}, 10}} {
		for bad := range 11 {
			v := healthView(check(func(s *machine.HealthSpec) { s.MaxUnhealthy = c.limit }), all...)
			for _, m := range all[:bad] {
				v.Nodes[m.Key] = conditions("Ready", "False", noon.Add(-time.Hour))
			}
			d := machine.DecideHealth(v)
			if want := bad * map[bool]int{true: 1}[bad <= c.most]; len(d.Remedies) != min(want, 9) {
				t.Errorf("%d of 10 unhealthy, limit %s: %d remedies, want %d", bad, c.limit, len(d.Remedies), want)
			}
		}
	}
	v := sick(check())
	d := machine.DecideHealth(v)
	v = later(v, d, time.Minute)
	v.Check.Spec.Paused = true
	if d = machine.DecideHealth(v); len(d.Remedies) > 0 || len(d.Status.Attempts) != 1 {
		t.Errorf("paused with one under way: %+v", d)
	}
}

// TestAttemptsAreForgotten when their machine is.
func TestAttemptsAreForgotten(t *testing.T) {
	v := sick(check())
	d := machine.DecideHealth(v)
	v = later(v, d, time.Minute)
	v.Machines = nil
	if d = machine.DecideHealth(v); len(d.Status.Attempts) != 0 || !d.Store || d.Status.Observed != 5 {
		t.Errorf("without the machine: %+v", d)
	}
}

// TestHealthDecidesPurely: a decision changes nothing of what it looks at, and is the same each time.
func TestHealthDecidesPurely(t *testing.T) {
	build := func() machine.HealthView {
		v := sick(check())
		v.Check.Status = machine.DecideHealth(v).Status
		v.Check.Status.Attempts = append(v.Check.Status.Attempts, machine.Attempt{UID: "gone"})
		v.Now = noon.Add(time.Hour)
		return v
	}
	v, same := build(), build()
	first, second := machine.DecideHealth(v), machine.DecideHealth(v)
	if !reflect.DeepEqual(v, same) || !reflect.DeepEqual(first, second) {
		t.Errorf("view:\n%+v\n%+v\ndecisions:\n%+v\n%+v", v, same, first, second)
	}
}
