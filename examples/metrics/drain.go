// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belayproject/belay/drain"
)

// Drain counts what Drainers do: belay_drain_nodes, belay_drain_evictions_total and belay_drain_pass_duration_seconds.
type Drain struct {
	prometheus.Collector

	nodes     *prometheus.GaugeVec
	evictions *prometheus.CounterVec
	passes    *prometheus.HistogramVec
}

// NewDrain returns a collector that counts nothing until its [Drain.NewHooks] are called.
func NewDrain() *Drain {
	d := &Drain{
		nodes: newGauge("drain_nodes", "Nodes by the phase of their drain.", "phase"),
		evictions: newCounter("drain_evictions_total",
			"Answers to evictions, by what follows from them and HTTP status code; 0 is none.", "outcome", "code"),
		passes: newHistogram("drain_pass_duration_seconds", "Time of a pass of a drain."),
	}
	d.Collector = collectors{d.nodes, d.evictions, d.passes}
	return d
}

// NewHooks returns the metrics of a Drainer: drain.Options.Metrics.
func (d *Drain) NewHooks() drain.Metrics {
	return drain.Metrics{
		Phase: func(from, to drain.Phase) {
			if from != "" {
				d.nodes.WithLabelValues(string(from)).Dec()
			}
			if to != "" {
				d.nodes.WithLabelValues(string(to)).Inc()
			}
		},
		Eviction: func(outcome drain.Verdict, code int, _ time.Duration) {
			d.evictions.WithLabelValues(string(outcome), strconv.Itoa(code)).Inc()
		},
		Pass: func(took time.Duration) { d.passes.WithLabelValues().Observe(took.Seconds()) },
	}
}
