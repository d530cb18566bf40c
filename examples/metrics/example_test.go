// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
	"github.com/belayproject/belay/examples/metrics"
)

// A Drainer over a cluster in memory, whose metrics are in the registry of the program.
func Example() {
	registry := prometheus.NewRegistry() // with controller-runtime: its metrics.Registry
	counts := metrics.NewDrain()
	registry.MustRegister(counts)
	cluster := draintest.New(draintest.Options{})
	if _, err := drain.New(drain.Options{Cache: cluster, Client: cluster, Metrics: counts.NewHooks()}); err != nil {
		fmt.Println(err)
		return
	}
	counts.NewHooks().Phase("", drain.Draining) // a Drainer calls this
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		fmt.Println(f.GetName(), f.GetMetric()[0].GetLabel()[0].GetValue(), f.GetMetric()[0].GetGauge().GetValue())
	}
	// Output: belay_drain_nodes Draining 1
}
