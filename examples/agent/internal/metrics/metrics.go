// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/component-base/metrics"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/agent/history"
	"github.com/belayproject/belay/lkg"
)

// Handler serves the metrics of a node, and what this process takes of memory, processor and files. status is asked at each scrape; a Condition without a Status means that nothing is known yet. totals
// and drifted, whether the rendered file is not what was rendered, may be nil.
func Handler(status func() configsync.Status, totals func() []history.Total, drifted func() bool) http.Handler {
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(&configs{status: status, totals: totals, drifted: drifted, d: describe()})
	metrics.RegisterBuildInfo(registry)
	registry.Registerer().MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	return metrics.HandlerFor(registry, metrics.HandlerOpts{})
}

// descriptions are those of the metrics.
type descriptions struct {
	assigned, active, good, failing, alarm *metrics.Desc
	left, starts, rejected, events, drift  *metrics.Desc
}

func describe() descriptions {
	desc := func(name, help string, labels ...string) *metrics.Desc {
		return metrics.NewDesc("belay_config_"+name, help, labels, nil, metrics.ALPHA, "")
	}
	which := []string{"source", "uid", "resource_version", "key"}
	return descriptions{
		assigned: desc("assigned", "1 for the config that is assigned.", which...),
		active:   desc("active", "1 for the config that is in use.", which...),
		good:     desc("last_known_good", "1 for the config to go back to.", which...),
		failing:  desc("error", "1 while something is in the way of the wanted config, or the config in use is a fallback."),
		alarm:    desc("alarm", "1 while nothing is left to go back to, or what was gone back to or promoted is not well."),
		left:     desc("trial_remaining_seconds", "Healthy time that the config in use lacks until its trial is over; absent without a trial."),
		starts:   desc("trial_restarts", "Unexplained restarts in the trial of the config in use; absent without a trial."),
		rejected: desc("rejected", "Configs that this node does not use, by the class of evidence.", "class"),
		drift:    desc("drifted", "1 while the rendered file is not what was rendered."),
		events:   desc("events_total", "What has happened on this node since its journal began, by kind and class of evidence: RolledBack counts rollbacks.", "kind", "class"),
	}
}

// configs collects at each scrape.
type configs struct {
	metrics.BaseStableCollector
	d       descriptions
	status  func() configsync.Status
	totals  func() []history.Total
	drifted func() bool
}

// DescribeWithStability implements metrics.StableCollector.
func (c *configs) DescribeWithStability(ch chan<- *metrics.Desc) {
	d := c.d
	for _, one := range []*metrics.Desc{d.assigned, d.active, d.good, d.failing, d.alarm, d.left, d.starts, d.rejected, d.events, d.drift} {
		ch <- one
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *configs) CollectWithStability(ch chan<- metrics.Metric) {
	if c.totals != nil {
		for _, t := range c.totals() {
			ch <- metrics.NewLazyConstMetric(c.d.events, metrics.CounterValue, float64(t.Count), string(t.Kind), string(t.Class))
		}
	}
	s := c.status()
	if s.Condition.Status == "" {
		return
	}
	gauge := func(d *metrics.Desc, v float64, labels ...string) {
		ch <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, v, labels...)
	}
	gauge(c.d.assigned, 1, which(s.Assigned)...)
	gauge(c.d.active, 1, which(s.Active)...)
	gauge(c.d.good, 1, which(s.LastKnownGood)...)
	gauge(c.d.failing, truth(s.Condition.Status != lkg.StatusTrue || s.Error != ""))
	gauge(c.d.alarm, truth(s.Alarm != ""))
	if c.drifted != nil {
		gauge(c.d.drift, truth(c.drifted()))
	}
	if t := s.Trial; t != nil {
		gauge(c.d.left, max(t.Needed-t.Healthy, 0).Seconds())
		gauge(c.d.starts, float64(t.Counted))
	}
	byClass := map[lkg.Class]int{}
	for _, b := range s.Rejected {
		byClass[b.Class()]++
	}
	for class, n := range byClass {
		gauge(c.d.rejected, float64(n), string(class))
	}
}

// which are the labels of a config.
func which(r lkg.Ref) []string {
	if r.IsLocal() {
		return []string{"local", "", "", ""}
	}
	return []string{cmp.Or(r.Namespace, "-") + "/" + r.Name, r.UID, r.ResourceVersion, r.Key}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
