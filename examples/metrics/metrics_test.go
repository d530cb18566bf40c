// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/metrics"
	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// want compares the metrics of these names, without help and types, with what a scrape of c shows.
func want(t *testing.T, c prometheus.Collector, names []string, lines ...string) {
	t.Helper()
	text := strings.Join(lines, "\n") + "\n"
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var header strings.Builder
	for _, f := range families {
		header.WriteString("# HELP " + f.GetName() + " " + f.GetHelp() + "\n")
		header.WriteString("# TYPE " + f.GetName() + " " + strings.ToLower(f.GetType().String()) + "\n")
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(header.String()+text), names...); err != nil {
		t.Error(err)
	}
}

// TestEachCollectorIsSound lints each collector, and registers all of them in one registry.
func TestEachCollectorIsSound(t *testing.T) {
	all := map[string]prometheus.Collector{
		"drain": metrics.NewDrain(), "rollout": metrics.NewRollout(), "machine": metrics.NewMachine(),
		"identity":     metrics.NewIdentity(func() *metrics.Census { return &metrics.Census{} }),
		"config":       metrics.NewConfig(metrics.ConfigOptions{}),
		"config nodes": metrics.NewConfigNodes(func() map[string]int { return map[string]int{"True": 1} }),
	}
	registry := prometheus.NewPedanticRegistry()
	for name, c := range all {
		if err := registry.Register(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
			t.Errorf("%s: %v, %v", name, problems, err)
		}
	}
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}

func TestDrain(t *testing.T) {
	c := metrics.NewDrain()
	m := c.NewHooks()
	m.Phase("", drain.Draining)
	m.Phase("", drain.Draining)
	m.Phase(drain.Draining, drain.Drained)
	m.Phase(drain.Drained, "")
	m.Eviction("Accepted", 201, time.Second)
	m.Eviction("Accepted", 201, time.Second)
	m.Eviction("BudgetExhausted", 429, time.Second)
	m.Pass(2 * time.Millisecond)
	want(t, c, []string{"belay_drain_nodes", "belay_drain_evictions_total"},
		`belay_drain_nodes{phase="Draining"} 1`, `belay_drain_nodes{phase="Drained"} 0`,
		`belay_drain_evictions_total{code="201",outcome="Accepted"} 2`,
		`belay_drain_evictions_total{code="429",outcome="BudgetExhausted"} 1`)
	if n := testutil.CollectAndCount(c, "belay_drain_pass_duration_seconds"); n != 1 {
		t.Errorf("%d histograms of passes, want 1", n)
	}
}

func TestRollout(t *testing.T) {
	c := metrics.NewRollout()
	m, _ := c.NewHooks("d")
	m.Transition(protocol.Admitted, protocol.Granted, "v1", "v2")
	m.Update("v1", "v2", rollout.Succeeded)
	m.Pass(time.Millisecond, nil)
	m.Pass(time.Millisecond, errors.New("conflict"))
	names := []string{"belay_rollout_transitions_total", "belay_rollout_updates_total", "belay_rollout_pass_errors_total"}
	want(t, c, names,
		`belay_rollout_transitions_total{domain="d",from="Admitted",from_revision="v1",to="Granted",to_revision="v2"} 1`,
		`belay_rollout_updates_total{domain="d",from_revision="v1",result="Succeeded",to_revision="v2"} 1`,
		`belay_rollout_pass_errors_total{domain="d"} 1`)
}

// R-RO-32: a rollout that is paused for too long has a series of its own, with the reason, as long as that is so.
func TestRolloutStalled(t *testing.T) {
	c := metrics.NewRollout()
	m, _ := c.NewHooks("d")
	names := []string{"belay_rollout_stalled"}
	m.Stalled("r", "PausedTooLong")
	want(t, c, names, `belay_rollout_stalled{domain="d",reason="PausedTooLong",rollout="r"} 1`)
	m.Stalled("r", "Frozen")
	want(t, c, names, `belay_rollout_stalled{domain="d",reason="Frozen",rollout="r"} 1`)
	m.Stalled("r", "")
	if n := testutil.CollectAndCount(c, names...); n != 0 {
		t.Errorf("%d series of a rollout that goes on, want none", n)
	}
}

// A process that leads no more shows nothing of how rollouts stand; another domain keeps its series.
func TestRolloutForgets(t *testing.T) {
	c := metrics.NewRollout()
	m, forget := c.NewHooks("d")
	other, _ := c.NewHooks("other")
	names := []string{"belay_rollout_nodes", "belay_rollout_phase", "belay_rollout_waiting_nodes", "belay_rollout_stalled"}
	m.Rollout("r", rollout.Running, rollout.Counts{Selected: 2, Waiting: 2}, map[rollout.Reason]int{"Cap": 2})
	m.Stalled("r", "DrainBlocked")
	other.Stalled("o", "Frozen")
	if n := testutil.CollectAndCount(c, names...); n != 11 {
		t.Errorf("%d series, want 7 states, a phase, a reason to wait, and two rollouts that are stalled", n)
	}
	m.Rollout("r", rollout.Paused, rollout.Counts{Selected: 2, Waiting: 2}, nil)
	want(t, c, names[1:3], `belay_rollout_phase{domain="d",phase="Paused",rollout="r"} 1`)
	forget()
	want(t, c, names, `belay_rollout_stalled{domain="other",reason="Frozen",rollout="o"} 1`)
}

func TestMachine(t *testing.T) {
	c := metrics.NewMachine()
	m, forget := c.NewHooks()
	m.Step(machine.StepPending, machine.StepCreating)
	m.Call(machine.Create, "", time.Second)
	m.Call(machine.Create, provider.Stockout, time.Second)
	m.Orphans(2)
	names := []string{"belay_machine_steps_total", "belay_machine_calls_total", "belay_machine_orphans"}
	counters := []string{
		`belay_machine_steps_total{from="Pending",to="Creating"} 1`,
		`belay_machine_calls_total{class="OK",kind="Create"} 1`,
		`belay_machine_calls_total{class="Stockout",kind="Create"} 1`,
	}
	want(t, c, names, append(counters, "belay_machine_orphans 2")...)
	forget()
	want(t, c, names, counters...)
	if n := testutil.CollectAndCount(c, "belay_machine_call_duration_seconds"); n != 1 {
		t.Errorf("%d histograms of calls, want 1", n)
	}
}

func TestIdentity(t *testing.T) {
	var census *metrics.Census
	c := metrics.NewIdentity(func() *metrics.Census { return census })
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d series without a view, want none", n)
	}
	census = &metrics.Census{States: map[string]int{"Alive": 3, "Lost": 0}, Fresh: true}
	c.NewHooks().Collected(identity.Gone)
	want(t, c, nil,
		`belay_agents{state="Alive"} 3`, `belay_agents{state="Lost"} 0`,
		`belay_agents_view{condition="Fresh"} 1`, `belay_agents_view{condition="MassLoss"} 0`,
		`belay_agent_leases_collected_total{outcome="Gone"} 1`)
}

func TestConfigNodes(t *testing.T) {
	c := metrics.NewConfigNodes(func() map[string]int { return map[string]int{"True": 4, "Absent": 1} })
	want(t, c, nil, `belay_config_nodes{status="Absent"} 1`, `belay_config_nodes{status="True"} 4`)
}

// The names and labels in each phase of a config's life.
func TestConfig(t *testing.T) {
	good := lkg.Ref{Namespace: "ns", Name: "v1", UID: "u1", ResourceVersion: "7", Key: "kubelet", Digest: "sha256:1"}
	bad := lkg.Ref{Namespace: "ns", Name: "v2", UID: "u2", ResourceVersion: "9", Key: "kubelet", Digest: "sha256:2"}
	var s configsync.Status
	var totals []metrics.EventTotal
	drifted := false
	c := metrics.NewConfig(metrics.ConfigOptions{
		Status: func() configsync.Status { return s }, Totals: func() []metrics.EventTotal { return totals },
		Drifted: func() bool { return drifted },
	})
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d series before the first start, want none", n)
	}
	s = configsync.Status{
		Assigned: good, Active: good, Condition: lkg.Condition{Status: lkg.StatusTrue},
		Trial: &configsync.TrialStatus{Needed: 10 * time.Minute, Healthy: 4 * time.Minute, Counted: 2},
	}
	want(t, c, nil,
		`belay_config_assigned{key="kubelet",resource_version="7",source="ns/v1",uid="u1"} 1`,
		`belay_config_active{key="kubelet",resource_version="7",source="ns/v1",uid="u1"} 1`,
		`belay_config_last_known_good{key="",resource_version="",source="local",uid=""} 1`,
		`belay_config_error 0`, `belay_config_alarm 0`, `belay_config_drifted 0`,
		`belay_config_trial_remaining_seconds 360`, `belay_config_trial_restarts 2`)
	s = configsync.Status{
		Assigned: bad, Active: good, LastKnownGood: good, Alarm: "nothing is left",
		Condition: lkg.Condition{Status: lkg.StatusFalse},
		Rejected:  []lkg.BadEntry{{Ref: bad, Reason: "failed to validate current (UID: u2)"}},
	}
	drifted = true
	totals = []metrics.EventTotal{
		{Kind: "RolledBack", Class: "Invalid", Count: 3}, {Kind: "Adopted", Count: 4},
	}
	want(t, c, nil,
		`belay_config_assigned{key="kubelet",resource_version="9",source="ns/v2",uid="u2"} 1`,
		`belay_config_active{key="kubelet",resource_version="7",source="ns/v1",uid="u1"} 1`,
		`belay_config_last_known_good{key="kubelet",resource_version="7",source="ns/v1",uid="u1"} 1`,
		`belay_config_error 1`, `belay_config_alarm 1`, `belay_config_drifted 1`,
		`belay_config_rejected{class="Invalid"} 1`,
		`belay_config_events_total{class="",kind="Adopted"} 4`,
		`belay_config_events_total{class="Invalid",kind="RolledBack"} 3`)
}
