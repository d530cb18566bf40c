// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/belayproject/belay/identity"
)

// A Census is what a view of the agents of nodes knows.
type Census struct {
	// States has the number of agents in each state.
	States map[string]int
	// Fresh is true while the view knows who is alive, MassLoss while so many agents are silent together that the view
	// calls none of them lost.
	Fresh, MassLoss bool
}

// Identity counts the agents of nodes by their Leases: belay_agents, belay_agents_view and
// belay_agent_leases_collected_total.
type Identity struct {
	count            func() *Census
	agents, view     *prometheus.Desc
	collectedOutcome *prometheus.CounterVec
}

// NewIdentity returns a collector that calls count at each scrape. count returns nil while this process has no view.
func NewIdentity(count func() *Census) *Identity {
	return &Identity{
		count:  count,
		agents: newDesc("agents", "Agents of nodes by what their Leases say.", "state"),
		view: newDesc("agents_view", "1 for what is true of the view of agents: Fresh while who is alive is known, "+
			"MassLoss while so many are silent together that none is called lost.", "condition"),
		collectedOutcome: newCounter("agent_leases_collected_total",
			"Leases of agents that are gone, by what came of the deletion.", "outcome"),
	}
}

// NewHooks returns the metrics of a Collector of Leases: identity.CollectorConfig.Metrics.
func (i *Identity) NewHooks() identity.CollectorMetrics {
	return identity.CollectorMetrics{
		Collected: func(o identity.CollectOutcome) { i.collectedOutcome.WithLabelValues(string(o)).Inc() },
	}
}

// Describe implements prometheus.Collector.
func (i *Identity) Describe(ch chan<- *prometheus.Desc) {
	ch <- i.agents
	ch <- i.view
	i.collectedOutcome.Describe(ch)
}

// Collect implements prometheus.Collector.
func (i *Identity) Collect(ch chan<- prometheus.Metric) {
	i.collectedOutcome.Collect(ch)
	if i.count == nil {
		return
	}
	c := i.count()
	if c == nil {
		return
	}
	sendCounts(ch, i.agents, c.States)
	sendCounts(ch, i.view, map[string]int{"Fresh": int(oneIf(c.Fresh)), "MassLoss": int(oneIf(c.MassLoss))})
}
