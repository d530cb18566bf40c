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

// Machines counts what a controller of machines does. When it does nothing any more, as another process leads, forget takes away what it has shown of how
// things stand. It may be called once for a Set.
func (s *Set) Machines() (m controller.Metrics, forget func()) {
	steps := counter("machine_steps_total", "Machines that went from one step to another.", "from", "to")
	calls := counter("machine_calls_total", "Actions for machines by how they ended: OK, or the class of the provider's error.", "kind", "class")
	took := histogram("machine_call_duration_seconds", "Time of an action for a machine.", "kind")
	orphans := gauge("machine_orphans", "Instances of this cluster at the provider that no machine owns, at the last list.")
	s.registry.MustRegister(steps, calls, took, orphans)
	return controller.Metrics{
		Step: func(from, to machine.StepName) { steps.WithLabelValues(string(from), string(to)).Inc() },
		Call: func(kind machine.ActionKind, class provider.Class, d time.Duration) {
			calls.WithLabelValues(string(kind), cmp.Or(string(class), Fine)).Inc()
			took.WithLabelValues(string(kind)).Observe(d.Seconds())
		},
		Orphans: func(n int) { orphans.WithLabelValues().Set(float64(n)) },
	}, orphans.Reset
}

// A Census is what a view of the agents of nodes knows.
type Census struct {
	// States has the number of agents in each state.
	States map[string]int
	// Fresh says that who is alive is known, MassLoss that so many are silent together that none of them is called lost.
	Fresh, MassLoss bool
}

// Agents has the agents of nodes counted at each scrape; count returns nil while this process does not lead. It may be called once for a Set.
func (s *Set) Agents(count func() *Census) identity.CollectorMetrics {
	collected := counter("agent_leases_collected_total", "Leases of agents that are gone, by what came of the deletion.", "outcome")
	s.registry.MustRegister(collected)
	s.counted("agents", "Agents of nodes by what their Leases say.", "state", func() map[string]int {
		if c := count(); c != nil {
			return c.States
		}
		return nil
	})
	s.counted("agents_view", "1 for what is true of the view of agents: Fresh while who is alive is known, MassLoss while so many are silent together that none is called lost.",
		"condition", func() map[string]int {
			c := count()
			if c == nil {
				return nil
			}
			return map[string]int{"Fresh": int(truth(c.Fresh)), "MassLoss": int(truth(c.MassLoss))}
		})
	return identity.CollectorMetrics{Collected: func(o identity.CollectOutcome) { collected.WithLabelValues(string(o)).Inc() }}
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
