// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics has collectors of Prometheus for what the packages of belay report: drains, rollouts, machines, the
// agents of nodes, and the config of one node. It is a module of its own, so that the library requires no Prometheus.
//
//	counts := metrics.NewDrain()
//	registerer.MustRegister(counts) // controller-runtime's metrics.Registry is one
//	d, err := drain.New(drain.Options{Metrics: counts.NewHooks(), …})
//
// Each constructor returns a collector that is not registered. NewHooks connects it to its package.
//
// Labels are bounded: states, phases and results are the constants of the packages; revisions are bounded by package
// rollout/controller; rollouts and domains are as many as an operator makes. No node, pod or message is a label. The
// labels of [Config] alone name an object: the source of the config of one node.
//
// # Concurrency
//
// All methods may be called at the same time.
package metrics
