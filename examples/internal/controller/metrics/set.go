// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/component-base/metrics"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/protocol"
)

// Set is all metrics of a process.
type Set struct {
	registry metrics.KubeRegistry

	transitions, updates, passErrors, evictions *metrics.CounterVec
	requests                                    *metrics.CounterVec
	nodes, waiting, phase, stalled              *metrics.GaugeVec
	drains, leads                               *metrics.GaugeVec
	pass, drainPass                             *metrics.HistogramVec
}

// New returns metrics in a registry of their own, with the version of this build, and what the process takes of memory, processor and files.
func New() *Set {
	s := &Set{
		registry:    metrics.NewKubeRegistry(),
		transitions: counter("rollout_transitions_total", "Nodes that went from one state of the protocol to another.", "domain", "from", "to", "from_revision", "to_revision"),
		updates:     counter("rollout_updates_total", "Attempts that ended, by result.", "domain", "from_revision", "to_revision", "result"),
		passErrors:  counter("rollout_pass_errors_total", "Passes over a domain that ended with an error.", "domain"),
		requests:    counter("api_requests_total", "Requests to the API server, by method and HTTP status code; 0 is no answer.", "method", "code"),
		nodes:       gauge("rollout_nodes", "Nodes of a rollout by where they are.", "domain", "rollout", "state"),
		waiting:     gauge("rollout_waiting_nodes", "Nodes of a rollout that wait, by reason.", "domain", "rollout", "reason"),
		phase:       gauge("rollout_phase", "1 for the phase that a rollout is in.", "domain", "rollout", "phase"),
		stalled:     gauge("rollout_stalled", "1 for the reason why a rollout does not go on unless somebody does something.", "domain", "rollout", "reason"),
		pass:        histogram("rollout_pass_duration_seconds", "Time of a pass over a domain.", "domain"),
		drains:      gauge("drain_nodes", "Nodes by the phase of their drain.", "phase"),
		evictions:   counter("drain_evictions_total", "Answers to evictions, by what follows from them and HTTP status code; 0 is none.", "outcome", "code"),
		drainPass:   histogram("drain_pass_duration_seconds", "Time of a pass of a drain."),
		leads:       gauge("leader", "1 while this process leads.", "name"),
	}
	s.registry.MustRegister(s.requests, s.transitions, s.updates, s.passErrors, s.nodes, s.waiting, s.phase, s.stalled, s.pass, s.drains, s.evictions, s.drainPass, s.leads)
	metrics.RegisterBuildInfo(s.registry)
	s.registry.Registerer().MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	return s
}

// Handler serves them.
func (s *Set) Handler() http.Handler { return metrics.HandlerFor(s.registry, metrics.HandlerOpts{}) }

// Leads notes whether this process leads by the Lease of that name.
func (s *Set) Leads(name string, is bool) {
	s.leads.WithLabelValues(name).Set(truth(is))
}

// Drain counts what a Drainer does.
func (s *Set) Drain() drain.Metrics {
	return drain.Metrics{
		Phase: func(from, to drain.Phase) {
			if from != "" {
				s.drains.WithLabelValues(string(from)).Dec()
			}
			if to != "" {
				s.drains.WithLabelValues(string(to)).Inc()
			}
		},
		Eviction: func(outcome drain.Verdict, code int, _ time.Duration) {
			s.evictions.WithLabelValues(string(outcome), strconv.Itoa(code)).Inc()
		},
		Pass: func(took time.Duration) { s.drainPass.WithLabelValues().Observe(took.Seconds()) },
	}
}

// Rollouts counts what the controller of a domain does. When it does nothing any more, as another process leads, forget takes away what it has shown of
// how rollouts stand.
func (s *Set) Rollouts(domain string) (m controller.Metrics, forget func()) {
	standing := &standing{set: s, domain: domain, seen: map[string]shown{}, stalled: map[string]string{}}
	return controller.Metrics{
		Transition: func(from, to protocol.State, fromRevision, toRevision string) {
			s.transitions.WithLabelValues(domain, string(from), string(to), fromRevision, toRevision).Inc()
		},
		Update: func(fromRevision, toRevision string, result rollout.Result) {
			s.updates.WithLabelValues(domain, fromRevision, toRevision, string(result)).Inc()
		},
		Rollout: standing.show,
		Stalled: standing.stalls,
		Pass: func(took time.Duration, err error) {
			s.pass.WithLabelValues(domain).Observe(took.Seconds())
			if err != nil {
				s.passErrors.WithLabelValues(domain).Inc()
			}
		},
	}, standing.forget
}

func counter(name, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{Namespace: "belay", Name: name, Help: help, StabilityLevel: metrics.ALPHA}, labels)
}

func gauge(name, help string, labels ...string) *metrics.GaugeVec {
	return metrics.NewGaugeVec(&metrics.GaugeOpts{Namespace: "belay", Name: name, Help: help, StabilityLevel: metrics.ALPHA}, labels)
}

func histogram(name, help string, labels ...string) *metrics.HistogramVec {
	return metrics.NewHistogramVec(&metrics.HistogramOpts{
		Namespace: "belay", Name: name, Help: help, StabilityLevel: metrics.ALPHA, Buckets: metrics.ExponentialBuckets(0.001, 4, 8),
	}, labels)
}
