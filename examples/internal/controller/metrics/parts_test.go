// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// lines are those of the page about a metric.
func lines(s *Set, metric string) string {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var all []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, metric) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return strings.Join(all, "\n")
}

func wantLines(t *testing.T, s *Set, metric string, want ...string) {
	t.Helper()
	if got := lines(s, metric); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// Actions for machines are counted by how they ended, and who looks after machines no more shows no orphans: those are the next leader's.
func TestMachinesAreCounted(t *testing.T) {
	s := New()
	m, forget := s.Machines()
	m.Step(machine.StepPending, machine.StepCreating)
	m.Call(machine.Create, "", time.Second)
	m.Call(machine.Create, provider.Stockout, time.Second)
	m.Orphans(2)
	wantLines(t, s, "belay_machine_steps_total", `belay_machine_steps_total{from="Pending",to="Creating"} 1`)
	wantLines(t, s, "belay_machine_calls_total", `belay_machine_calls_total{class="OK",kind="Create"} 1`, `belay_machine_calls_total{class="Stockout",kind="Create"} 1`)
	wantLines(t, s, "belay_machine_call_duration_seconds_count", `belay_machine_call_duration_seconds_count{kind="Create"} 2`)
	wantLines(t, s, "belay_machine_orphans", "belay_machine_orphans 2")
	forget()
	wantLines(t, s, "belay_machine_orphans", "")
	m.Orphans(0)
	wantLines(t, s, "belay_machine_orphans", "belay_machine_orphans 0")
}

// What a view of agents knows is asked for at each scrape, and nothing is shown by who has none.
func TestAgentsAreCounted(t *testing.T) {
	s := New()
	var c *Census
	collected := s.Agents(func() *Census { return c })
	wantLines(t, s, "belay_agents", "")
	c = &Census{States: map[string]int{"Alive": 3, "Lost": 0}, Fresh: true}
	wantLines(t, s, "belay_agents{", `belay_agents{state="Alive"} 3`, `belay_agents{state="Lost"} 0`)
	wantLines(t, s, "belay_agents_view", `belay_agents_view{condition="Fresh"} 1`, `belay_agents_view{condition="MassLoss"} 0`)
	collected.Collected(identity.Gone)
	wantLines(t, s, "belay_agent_leases", `belay_agent_leases_collected_total{outcome="Gone"} 1`)
}

// Nodes are counted by what they say of their config.
func TestConfigsAreCounted(t *testing.T) {
	s := New()
	s.Configs(func() map[string]int { return map[string]int{"True": 4, "Absent": 1} })
	wantLines(t, s, "belay_config_nodes", `belay_config_nodes{status="Absent"} 1`, `belay_config_nodes{status="True"} 4`)
}
