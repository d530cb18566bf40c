// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// ConfigNodes counts Nodes by what they say of their config: belay_config_nodes.
type ConfigNodes struct {
	count func() map[string]int
	nodes *prometheus.Desc
}

// NewConfigNodes returns a collector that calls count at each scrape. count returns the number of Nodes by the status
// of their condition ConfigOK, or nil where it is not known.
func NewConfigNodes(count func() map[string]int) *ConfigNodes {
	return &ConfigNodes{count: count, nodes: newDesc("config_nodes",
		"Nodes by the status of their condition ConfigOK; Absent is that of nodes that do not report one.", "status")}
}

// Describe implements prometheus.Collector.
func (c *ConfigNodes) Describe(ch chan<- *prometheus.Desc) { ch <- c.nodes }

// Collect implements prometheus.Collector.
func (c *ConfigNodes) Collect(ch chan<- prometheus.Metric) {
	if c.count != nil {
		sendCounts(ch, c.nodes, c.count())
	}
}
