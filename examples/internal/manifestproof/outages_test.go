// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
)

// An outage is what a fleet's controllers export over a time.
type outage struct {
	name  string
	every time.Duration // of scrapes and evaluations; 0 means those of the ServiceMonitor, 30 s
	// series are the values of each: "1 5m, 0 1h" is 1 for five minutes, then 0 for an hour; in the time of a "_" it is not exported.
	series map[string]string
	want   []string
}

// outages are held against all rules: in each these alerts fire at these times, and no other alert does.
var outages = slices.Concat(agentOutages, leaderOutages, rolloutOutages)

// agentOutages have 100 agents that renew every ten seconds, with the default --agent-lease-duration, 40 s.
var agentOutages = []outage{
	{
		name: "all agents fall silent within one renewal, and stay so",
		series: map[string]string{
			`belay_agents{pod="a",state="Alive"}`: "100 5m, 0 3h", `belay_agents{pod="a",state="Suspect"}`: "0 5m, 100 4m, 0 2h56m",
			`belay_agents{pod="a",state="Lost"}`: "0 9m, 100 2h56m", `belay_agents_view{condition="Fresh",pod="a"}`: "1 3h5m",
			`belay_agents_view{condition="MassLoss",pod="a"}`: "0 5m30s, 1 3m30s, 0 2h56m",
		},
		want: []string{`BelayAgentsLostTogether{} 7m0s-`, `BelayAgentsLost{state="Lost"} 24m0s-`},
	},
	{
		name: "another controller takes over in the middle of that, and begins to look anew",
		series: map[string]string{
			`belay_agents{pod="a",state="Alive"}`: "100 5m, 0 10m, _ 1h", `belay_agents{pod="a",state="Suspect"}`: "0 5m, 100 4m, 0 6m, _ 1h",
			`belay_agents{pod="a",state="Lost"}`: "0 9m, 100 6m, _ 1h", `belay_agents_view{condition="Fresh",pod="a"}`: "1 15m, _ 1h",
			`belay_agents{pod="b",state="Alive"}`: "_ 16m, 0 1h", `belay_agents{pod="b",state="Unconfirmed"}`: "_ 16m, 100 1m, 0 1h",
			`belay_agents{pod="b",state="Suspect"}`: "_ 16m, 0 1h", `belay_agents{pod="b",state="Lost"}`: "_ 16m, 0 1m, 100 1h",
			`belay_agents_view{condition="Fresh",pod="b"}`: "_ 16m, 0 30s, 1 1h",
		},
		want: []string{`BelayAgentsLostTogether{} 7m0s-`, `BelayAgentsLost{state="Lost"} 24m0s-`},
	},
	{
		name: "a third of the agents is silent, and they come back after an hour",
		series: map[string]string{
			`belay_agents{pod="a",state="Alive"}`: "100 5m, 67 1h, 100 1h", `belay_agents{pod="a",state="Suspect"}`: "0 5m, 33 30s, 0 2h",
			`belay_agents{pod="a",state="Lost"}`: "0 5m30s, 33 59m30s, 0 1h",
		},
		want: []string{`BelayAgentsLost{state="Lost"} 20m30s-1h9m30s`},
	},
	{
		name: "two of five nodes boot for a minute and a half",
		series: map[string]string{
			`belay_agents{pod="a",state="Alive"}`: "5 5m, 3 1m30s, 5 1h", `belay_agents{pod="a",state="Suspect"}`: "0 5m, 2 1m30s, 0 1h",
			`belay_agents{pod="a",state="Lost"}`: "0 2h", `belay_agents_view{condition="MassLoss",pod="a"}`: "0 5m30s, 1 1m, 0 1h",
		},
	},
	{
		name: "one of two agents is silent: that is one node",
		series: map[string]string{
			`belay_agents{pod="a",state="Alive"}`: "2 5m, 1 1h", `belay_agents{pod="a",state="Suspect"}`: "0 5m, 1 30s, 0 1h",
			`belay_agents{pod="a",state="Lost"}`: "0 5m30s, 1 1h",
		},
		want: []string{`BelayAgentsLost{state="Lost"} 20m30s-`},
	},
	{
		name: "the controller does not see its own Lease being renewed, also not the one that takes over",
		series: map[string]string{
			`belay_agents{pod="a",state="Alive"}`: "100 15m, _ 1h", `belay_agents{pod="b",state="Unconfirmed"}`: "_ 16m, 100 1h",
			`belay_agents_view{condition="Fresh",pod="a"}`: "1 5m, 0 10m, _ 1h", `belay_agents_view{condition="Fresh",pod="b"}`: "_ 16m, 0 1h",
		},
		want: []string{`BelayAgentsUnknown{condition="Fresh"} 15m0s-`},
	},
}

var leaderOutages = []outage{
	{
		name:   "no replica answers",
		series: map[string]string{up: "1 5m, 0 1h"},
		want:   []string{`BelayControllerDown{} 10m0s-`},
	},
	{
		name:   "replicas answer, and have never seen the cluster whole",
		series: map[string]string{`belay_leader{name="rollout-default",pod="a"}`: "0 1h", `belay_leader{name="agents",pod="a"}`: "0 1h", `belay_leader{name="rollout-default",pod="b"}`: "0 1h"},
		want:   []string{`BelayNoLeader{name="agents"} 5m0s-`, `BelayNoLeader{name="rollout-default"} 5m0s-`},
	},
	{
		name:   "the lead changes hands, with a minute between",
		series: map[string]string{`belay_leader{name="rollout-default",pod="a"}`: "1 20m, 0 1h", `belay_leader{name="rollout-default",pod="b"}`: "0 21m, 1 1h"},
	},
}

// led has the leader of a domain changed after 20 minutes, with one minute between, and what it shows of a rollout with it.
func led(name, labels, value string, more ...string) map[string]string {
	all := map[string]string{
		`belay_leader{name="rollout-default",pod="a"}`: "1 20m, 0 2h", `belay_leader{name="rollout-default",pod="b"}`: "0 21m, 1 2h",
		fmt.Sprintf(`%s{%s,pod="a"}`, name, labels): value + " 20m, _ 2h", fmt.Sprintf(`%s{%s,pod="b"}`, name, labels): "_ 21m, " + value + " 2h",
	}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

// rolloutOutages have a leader that dies in the middle.
var rolloutOutages = []outage{
	{
		name:   "a rollout has stopped by itself",
		series: led("belay_rollout_phase", `domain="default",phase="Frozen",rollout="r"`, "1"),
		want:   []string{`BelayRolloutFrozen{domain="default", phase="Frozen", rollout="r"} 0s-`},
	},
	{
		name: "a rollout that had stopped goes on",
		series: map[string]string{
			`belay_leader{name="rollout-default",pod="a"}`: "1 2h", `belay_rollout_transitions_total{domain="default",pod="a"}`: "1 10m, 2 20m, 3 30m, 4 1h",
			`belay_rollout_phase{domain="default",phase="Frozen",rollout="r",pod="a"}`: "1 10m, _ 1h50m", `belay_rollout_phase{domain="default",phase="Running",rollout="r",pod="a"}`: "_ 10m, 1 1h50m",
		},
		want: []string{`BelayRolloutFrozen{domain="default", phase="Frozen", rollout="r"} 0s-10m0s`},
	},
	{
		name: "new nodes have no agent for a moment, and a node holds the rollout up for one, again and again",
		series: map[string]string{
			`belay_leader{name="rollout-default",pod="a"}`: "1 2h", `belay_rollout_transitions_total{domain="default",pod="a"}`: "1 5m, 2 55m, 3 1h",
			`belay_rollout_phase{domain="default",phase="Running",rollout="r",pod="a"}`:          "1 2h",
			`belay_rollout_waiting_nodes{domain="default",reason="NoAgent",rollout="r",pod="a"}`: strings.Repeat("1 30s, _ 4m, ", 26) + "_ 3m",
			`belay_rollout_stalled{domain="default",reason="DrainBlocked",rollout="r",pod="a"}`:  strings.Repeat("1 30s, _ 4m, ", 26) + "_ 3m",
		},
	},
	{
		name:   "nodes are broken",
		series: led("belay_rollout_nodes", `domain="default",rollout="r",state="Broken"`, "2", `belay_rollout_nodes{domain="default",rollout="q",state="Broken",pod="a"}`, "1 10m, 0 1h"),
		want:   []string{`BelayNodesBroken{domain="default", rollout="r", state="Broken"} 15m0s-`},
	},
	{
		name:   "nodes have no agent",
		series: led("belay_rollout_waiting_nodes", `domain="default",reason="NoAgent",rollout="r"`, "2"),
		want:   []string{`BelayNodesWithoutAgent{domain="default", reason="NoAgent", rollout="r"} 30m0s-`},
	},
	{
		name:   "a rollout is stalled",
		series: led("belay_rollout_stalled", `domain="default",reason="DrainBlocked",rollout="r"`, "1"),
		want:   []string{`BelayRolloutStalled{domain="default", reason="DrainBlocked", rollout="r"} 15m0s-`},
	},
	{
		name:   "a rollout that runs stands",
		series: led("belay_rollout_phase", `domain="default",phase="Running",rollout="r"`, "1"),
		want:   []string{`BelayRolloutStands{domain="default", phase="Running", rollout="r"} 15m0s-`},
	},
	{
		name:   "nothing leaves nodes that are being emptied; the old leader goes on showing its drains",
		series: led("belay_drain_nodes", `phase="Draining"`, "2", `belay_drain_nodes{phase="Draining",pod="a"}`, "2 2h"),
		want:   []string{`BelayDrainBlocked{} 15m0s-`},
	},
	{
		name:   "pods leave nodes that are being emptied",
		series: led("belay_drain_nodes", `phase="Draining"`, "2", `belay_drain_evictions_total{outcome="Accepted",code="201",pod="a"}`, "1 5m, 2 25m, 3 25m, 4 25m, 5 25m, 6 25m, 7 25m"),
	},
	{
		name:   "nodes with nothing to evict are emptied one after the other",
		series: map[string]string{`belay_leader{name="rollout-default",pod="a"}`: "1 1h", `belay_drain_nodes{phase="Draining",pod="a"}`: strings.Repeat("1 30s, 0 2m, ", 20) + "0 1m"},
	},
	{
		name: "a rollout is paused, and the leader dies after twelve hours", every: time.Minute,
		series: map[string]string{
			`belay_leader{name="rollout-default",pod="a"}`: "1 12h, _ 13h", `belay_leader{name="rollout-default",pod="b"}`: "0 12h10m, 1 13h",
			`belay_rollout_phase{domain="default",phase="Paused",rollout="r",pod="a"}`: "1 12h, _ 13h", `belay_rollout_phase{domain="default",phase="Paused",rollout="r",pod="b"}`: "_ 12h10m, 1 13h",
		},
		want: []string{`BelayNoLeader{name="rollout-default"} 12h5m0s-12h10m0s`, `BelayRolloutWaitsForPeople{domain="default", phase="Paused", rollout="r"} 24h0m0s-`},
	},
}

// up is that of a replica; it is 1 in each outage that says nothing else.
const up = `up{job="belay-controller",pod="a"}`

// Of an outage people hear in time, once, for as long as it lasts, and of nothing else.
func TestAlertsFireInTheirOutages(t *testing.T) {
	for i := 0; i < len(outages); i += raceshare.Step(t) {
		h := outages[i]
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			if h.every == 0 {
				h.every = 30 * time.Second
			}
			var series []string
			end := time.Duration(0)
			for name, values := range h.series {
				text, lasts := notation(t, values, h.every)
				series, end = append(series, name+" "+text), max(end, lasts)
			}
			if h.series[up] == "" {
				series = append(series, fmt.Sprintf("%s 1x%d", up, end/h.every))
			}
			slices.Sort(h.want)
			if got := newPrometheus(t, h.every, series).run(h.every, end-h.every); !slices.Equal(got, h.want) {
				t.Errorf("fired:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(h.want, "\n"))
			}
		})
	}
}

// notation has the values of an outage as Prometheus reads them, and how long they last.
func notation(t *testing.T, values string, every time.Duration) (text string, lasts time.Duration) {
	t.Helper()
	for part := range strings.SplitSeq(values, ", ") {
		value, duration, _ := strings.Cut(part, " ")
		d, err := time.ParseDuration(duration)
		must(t, err)
		n := int(d / every)
		if value != "_" {
			n-- // 1x0 is one sample, and _x0 is none
		}
		text += fmt.Sprintf(" %sx%d", value, n)
		lasts += d
	}
	return text, lasts
}

// Every alert is in an outage in which it fires, or is one that no outage of a controller raises.
func TestOutagesRaiseTheAlertsOfControllers(t *testing.T) {
	others := []string{
		"BelayPassesFail", "BelayPassesSlow", "BelayEvictionsRefused", "BelayConfigsBad", "BelayMachineCallsFail", "BelayMachineOrphans",
	}
	for _, r := range rules(t, exported(t)) {
		raised := slices.ContainsFunc(outages, func(h outage) bool {
			return slices.ContainsFunc(h.want, func(w string) bool { return strings.HasPrefix(w, r.Alert+"{") })
		})
		if r.Alert != "" && raised == slices.Contains(others, r.Alert) {
			t.Errorf("%s: it is raised in an outage: %t", r.Alert, raised)
		}
	}
}
