// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/protocol"
)

// Rollout counts what the controllers of disruption domains do: the metrics that begin with belay_rollout_.
type Rollout struct {
	prometheus.Collector

	transitions, updates, passErrors *prometheus.CounterVec
	nodes, waiting, phase, stalled   *prometheus.GaugeVec
	passes                           *prometheus.HistogramVec
}

// NewRollout returns a collector that counts nothing until its [Rollout.NewHooks] are called.
func NewRollout() *Rollout {
	r := &Rollout{
		transitions: newCounter("rollout_transitions_total", "Nodes that went from one state of the protocol to another.",
			"domain", "from", "to", "from_revision", "to_revision"),
		updates: newCounter("rollout_updates_total", "Attempts that ended, by result.",
			"domain", "from_revision", "to_revision", "result"),
		passErrors: newCounter("rollout_pass_errors_total", "Passes over a domain that ended with an error.", "domain"),
		nodes:      newGauge("rollout_nodes", "Nodes of a rollout by where they are.", "domain", "rollout", "state"),
		waiting: newGauge("rollout_waiting_nodes", "Nodes of a rollout that wait, by reason.",
			"domain", "rollout", "reason"),
		phase: newGauge("rollout_phase", "1 for the phase that a rollout is in.", "domain", "rollout", "phase"),
		stalled: newGauge("rollout_stalled", "1 for the reason why a rollout does not go on by itself.",
			"domain", "rollout", "reason"),
		passes: newHistogram("rollout_pass_duration_seconds", "Time of a pass over a domain.", "domain"),
	}
	r.Collector = collectors{r.transitions, r.updates, r.passErrors, r.nodes, r.waiting, r.phase, r.stalled, r.passes}
	return r
}

// NewHooks returns the metrics of the controller of a domain: rollout/controller.Options.Metrics. Call forget when
// another process leads: it removes the gauges that say how the rollouts of the domain stand.
func (r *Rollout) NewHooks(domain string) (m controller.Metrics, forget func()) {
	s := &standing{of: r, domain: domain, shown: map[string]shown{}, stalled: map[string]string{}}
	return controller.Metrics{
		Transition: func(from, to protocol.State, fromRevision, toRevision string) {
			r.transitions.WithLabelValues(domain, string(from), string(to), fromRevision, toRevision).Inc()
		},
		Update: func(fromRevision, toRevision string, result rollout.Result) {
			r.updates.WithLabelValues(domain, fromRevision, toRevision, string(result)).Inc()
		},
		Rollout: s.setRollout,
		Stalled: s.setStalled,
		Pass: func(took time.Duration, err error) {
			r.passes.WithLabelValues(domain).Observe(took.Seconds())
			if err != nil {
				r.passErrors.WithLabelValues(domain).Inc()
			}
		},
	}, s.removeAll
}
