// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/provider"
)

// ClassOK is the class of a call for a machine that has no error.
const ClassOK = "OK"

// Machine counts what a controller of machines does: the metrics that begin with belay_machine_.
type Machine struct {
	prometheus.Collector

	steps, calls *prometheus.CounterVec
	durations    *prometheus.HistogramVec
	orphans      *prometheus.GaugeVec
}

// NewMachine returns a collector that counts nothing until its [Machine.NewHooks] are called.
func NewMachine() *Machine {
	m := &Machine{
		steps: newCounter("machine_steps_total", "Machines that went from one step to another.", "from", "to"),
		calls: newCounter("machine_calls_total",
			"Actions for machines by how they ended: OK, or the class of the provider's error.", "kind", "class"),
		durations: newHistogram("machine_call_duration_seconds", "Time of an action for a machine.", "kind"),
		orphans: newGauge("machine_orphans",
			"Instances of this cluster at the provider that no machine owns, at the last list."),
	}
	m.Collector = collectors{m.steps, m.calls, m.durations, m.orphans}
	return m
}

// NewHooks returns the metrics of a controller of machines: machine/controller.Options.Metrics. Call forget when
// another process leads: it removes the number of orphans.
func (m *Machine) NewHooks() (hooks controller.Metrics, forget func()) {
	return controller.Metrics{
		Step: func(from, to machine.StepName) { m.steps.WithLabelValues(string(from), string(to)).Inc() },
		Call: func(kind machine.ActionKind, class provider.Class, took time.Duration) {
			m.calls.WithLabelValues(string(kind), cmp.Or(string(class), ClassOK)).Inc()
			m.durations.WithLabelValues(string(kind)).Observe(took.Seconds())
		},
		Orphans: func(n int) { m.orphans.WithLabelValues().Set(float64(n)) },
	}, m.orphans.Reset
}
