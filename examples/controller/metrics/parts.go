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

// Agents has the agents of nodes counted, at each scrape, by what their Leases say; none while this process does not lead. It counts what is collected, and notes
// how far the view is to be believed. It may be called once for a Set.
func (s *Set) Agents(count func() map[string]int) (identity.ViewMetrics, identity.CollectorMetrics) {
	fresh := metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "belay", Name: "agents_view_fresh", Help: "1 while who is alive is known.", StabilityLevel: metrics.ALPHA,
	})
	brake := metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "belay", Name: "agents_mass_loss", Help: "1 while so many agents are silent together that none of them is called lost.", StabilityLevel: metrics.ALPHA,
	})
	collected := counter("agent_leases_collected_total", "Leases of agents that are gone, by what came of the deletion.", "outcome")
	s.registry.MustRegister(fresh, brake, collected)
	s.counted("agents", "Agents of nodes by what their Leases say.", "state", count)
	view := identity.ViewMetrics{Fresh: func(is bool) { fresh.Set(truth(is)) }, Brake: func(on bool) { brake.Set(truth(on)) }}
	return view, identity.CollectorMetrics{Collected: func(o identity.CollectOutcome) { collected.WithLabelValues(string(o)).Inc() }}
}

// Configs has the Nodes counted, at each scrape, by what they say of their config. It may be called once for a Set.
func (s *Set) Configs(count func() map[string]int) {
	s.counted("config_nodes", "Nodes by the status of their condition ConfigOK; Absent is that of nodes that do not report one.", "status", count)
}

// counted has a gauge with one label counted at each scrape.
func (s *Set) counted(name, help, label string, count func() map[string]int) {
	s.registry.CustomMustRegister(&counts{count: count, desc: metrics.NewDesc("belay_"+name, help, []string{label}, nil, metrics.ALPHA, "")})
}

type counts struct {
	metrics.BaseStableCollector
	desc  *metrics.Desc
	count func() map[string]int
}

// DescribeWithStability implements metrics.StableCollector.
func (c *counts) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- c.desc }

// CollectWithStability implements metrics.StableCollector.
func (c *counts) CollectWithStability(ch chan<- metrics.Metric) {
	for value, n := range c.count() {
		ch <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, float64(n), value)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
