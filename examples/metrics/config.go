// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/lkg"
)

// ConfigOptions say where a [Config] reads. Each function is called at each scrape. All but Status may be nil.
type ConfigOptions struct {
	// Status is that of the node's Syncer. While its Condition has no Status, nothing is known yet.
	Status func() configsync.Status
	// Totals counts what has happened since the journal of the node began.
	Totals func() []EventTotal
	// Drifted reports whether the rendered file is not what was rendered.
	Drifted func() bool
}

// An EventTotal is how often something has happened on a node, such as RolledBack with the class CrashLoop.
type EventTotal struct {
	Kind, Class string
	Count       uint64
}

// Config shows the config of one node: the metrics that begin with belay_config_.
type Config struct {
	o ConfigOptions

	assigned, active, good, failing, alarm *prometheus.Desc
	left, starts, rejected, events, drift  *prometheus.Desc
}

// NewConfig returns a collector of the config of one node.
func NewConfig(o ConfigOptions) *Config {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return newDesc("config_"+name, help, labels...)
	}
	which := []string{"source", "uid", "resource_version", "key"}
	return &Config{
		o:        o,
		assigned: desc("assigned", "1 for the config that is assigned.", which...),
		active:   desc("active", "1 for the config that is in use.", which...),
		good:     desc("last_known_good", "1 for the config to go back to.", which...),
		failing: desc("error",
			"1 while something is in the way of the wanted config, or the config in use is a fallback."),
		alarm: desc("alarm",
			"1 while nothing is left to go back to, or what was gone back to or promoted is not well."),
		left: desc("trial_remaining_seconds",
			"Healthy time that the config in use lacks until its trial is over; absent without a trial."),
		starts: desc("trial_restarts",
			"Unexplained restarts in the trial of the config in use; absent without a trial."),
		rejected: desc("rejected", "Configs that this node does not use, by the class of evidence.", "class"),
		drift:    desc("drifted", "1 while the rendered file is not what was rendered."),
		events: desc("events_total", "What has happened on this node since its journal began, by kind and class of "+
			"evidence: RolledBack counts rollbacks.", "kind", "class"),
	}
}

// Describe implements prometheus.Collector.
func (c *Config) Describe(ch chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{
		c.assigned, c.active, c.good, c.failing, c.alarm, c.left, c.starts, c.rejected, c.events, c.drift,
	} {
		ch <- one
	}
}

// Collect implements prometheus.Collector.
func (c *Config) Collect(ch chan<- prometheus.Metric) {
	if c.o.Totals != nil {
		for _, t := range c.o.Totals() {
			ch <- prometheus.MustNewConstMetric(c.events, prometheus.CounterValue, float64(t.Count),
				t.Kind, t.Class)
		}
	}
	if c.o.Status == nil {
		return
	}
	if s := c.o.Status(); s.Condition.Status != "" {
		for _, m := range c.metricsOf(s) {
			ch <- m
		}
	}
}

// metricsOf are the gauges of a status that is known.
func (c *Config) metricsOf(s configsync.Status) []prometheus.Metric {
	var all []prometheus.Metric
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		all = append(all, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...))
	}
	gauge(c.assigned, 1, labelsOf(s.Assigned)...)
	gauge(c.active, 1, labelsOf(s.Active)...)
	gauge(c.good, 1, labelsOf(s.LastKnownGood)...)
	gauge(c.failing, oneIf(s.Condition.Status != lkg.StatusTrue || s.Error != ""))
	gauge(c.alarm, oneIf(s.Alarm != ""))
	if c.o.Drifted != nil {
		gauge(c.drift, oneIf(c.o.Drifted()))
	}
	if t := s.Trial; t != nil {
		gauge(c.left, max(t.Needed-t.Healthy, 0).Seconds())
		gauge(c.starts, float64(t.Counted))
	}
	byClass := map[lkg.Class]int{}
	for _, b := range s.Rejected {
		byClass[b.Class()]++
	}
	for class, n := range byClass {
		gauge(c.rejected, float64(n), string(class))
	}
	return all
}

// labelsOf are the labels of a config.
func labelsOf(r lkg.Ref) []string {
	if r.IsLocal() {
		return []string{"local", "", "", ""}
	}
	return []string{cmp.Or(r.Namespace, "-") + "/" + r.Name, r.UID, r.ResourceVersion, r.Key}
}
