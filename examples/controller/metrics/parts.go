// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/provider"
)

// Fine is the class of a call that has no error.
const Fine = "OK"

// Machines counts what a controller of machines does. It may be called once for a Set.
func (s *Set) Machines() controller.Metrics {
	steps := counter("machine_steps_total", "Machines that went from one step to another.", "from", "to")
	calls := counter("machine_calls_total", "Actions for machines by how they ended: OK, or the class of the provider's error.", "kind", "class")
	took := histogram("machine_call_duration_seconds", "Time of an action for a machine.", "kind")
	orphans := metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "belay", Name: "machine_orphans", Help: "Instances of this cluster at the provider that no machine owns, at the last list.", StabilityLevel: metrics.ALPHA,
	})
	s.registry.MustRegister(steps, calls, took, orphans)
	return controller.Metrics{
		Step: func(from, to machine.StepName) { steps.WithLabelValues(string(from), string(to)).Inc() },
		Call: func(kind machine.ActionKind, class provider.Class, d time.Duration) {
			calls.WithLabelValues(string(kind), cmp.Or(string(class), Fine)).Inc()
			took.WithLabelValues(string(kind)).Observe(d.Seconds())
		},
		Orphans: func(n int) { orphans.Set(float64(n)) },
	}
}

// Agents counts the agents of nodes as a view sees them, and what is collected. forget takes away who is alive: that is the next leader's to show. It may be
// called once for a Set.
func (s *Set) Agents() (view identity.ViewMetrics, collector identity.CollectorMetrics, forget func()) {
	agents := gauge("agents", "Agents of nodes by what their Leases say.", "state")
	fresh := metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "belay", Name: "agents_view_fresh", Help: "1 while who is alive is known.", StabilityLevel: metrics.ALPHA,
	})
	brake := metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "belay", Name: "agents_mass_loss", Help: "1 while so many agents are silent together that none of them is called lost.", StabilityLevel: metrics.ALPHA,
	})
	collected := counter("agent_leases_collected_total", "Leases of agents that are gone, by what came of the deletion.", "outcome")
	s.registry.MustRegister(agents, fresh, brake, collected)
	view = identity.ViewMetrics{
		Peers: func(byState map[identity.State]int) {
			for state, n := range byState {
				agents.WithLabelValues(string(state)).Set(float64(n))
			}
		},
		Fresh: func(is bool) { fresh.Set(truth(is)) },
		Brake: func(on bool) { brake.Set(truth(on)) },
	}
	collector = identity.CollectorMetrics{Collected: func(o identity.CollectOutcome) { collected.WithLabelValues(string(o)).Inc() }}
	return view, collector, agents.Reset
}

// Configs has the Nodes counted, at each scrape, by what their condition of that type says.
func (s *Set) Configs(count func() map[string]int) {
	s.registry.CustomMustRegister(&configs{count: count, nodes: metrics.NewDesc("belay_config_nodes",
		"Nodes by the status of their condition ConfigOK; Absent is that of nodes that do not report one.", []string{"status"}, nil, metrics.ALPHA, "")})
}

type configs struct {
	metrics.BaseStableCollector
	nodes *metrics.Desc
	count func() map[string]int
}

// DescribeWithStability implements metrics.StableCollector.
func (c *configs) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- c.nodes }

// CollectWithStability implements metrics.StableCollector.
func (c *configs) CollectWithStability(ch chan<- metrics.Metric) {
	for status, n := range c.count() {
		ch <- metrics.NewLazyConstMetric(c.nodes, metrics.GaugeValue, float64(n), status)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
