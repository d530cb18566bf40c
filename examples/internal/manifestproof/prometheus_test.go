// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// A prometheus evaluates the rules of the manifests over series that it is given. Expressions are evaluated by Prometheus' own engine; what becomes of
// their results, which its rule manager does, is here: what is recorded, and for how long an alert is pending and goes on. That package would bring the
// clients of three clouds.
type prometheus struct {
	t      *testing.T
	engine *promql.Engine
	rules  []alertRule
	all    map[string]*storedSeries // by the text of their labels
	alerts map[string]*raised       // by name and labels
	firing map[string][]string      // the times between which an alert fired
}

// A raised alert is pending at first.
type raised struct {
	since, last time.Duration
	fires       bool
}

// newPrometheus has the rules, and a sample of each series every step. Series are in the notation of promtool's unit tests: what is omitted
// was not there when its target was scraped.
func newPrometheus(t *testing.T, step time.Duration, series []string) *prometheus {
	t.Helper()
	syntax := parser.NewParser(parser.Options{})
	p := &prometheus{
		t: t, all: map[string]*storedSeries{}, alerts: map[string]*raised{}, firing: map[string][]string{},
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: patience, LookbackDelta: 5 * time.Minute, Parser: syntax}),
	}
	for _, u := range only(build(t, "monitoring"), "PrometheusRule") {
		var f ruleFile
		must(t, json.Unmarshal(encoded(t, u), &f))
		for _, g := range f.Spec.Groups {
			p.rules = append(p.rules, g.Rules...)
		}
	}
	for _, text := range series {
		lset, values, err := syntax.ParseSeriesDesc(text)
		must(t, err)
		for i, v := range values {
			if v.Omitted {
				v.Value = math.Float64frombits(value.StaleNaN)
			}
			p.append(lset, time.Duration(i)*step, v.Value)
		}
	}
	return p
}

// run evaluates all rules every step until the end, and returns when each alert has fired: "name{labels} from-to", sorted, without a time where
// it still fires.
func (p *prometheus) run(step, end time.Duration) (fired []string) {
	p.t.Helper()
	for now := time.Duration(0); now <= end; now += step {
		for _, r := range p.rules {
			if result := p.query(r.Expr, now); r.Record != "" {
				p.record(r, result, now)
			} else {
				p.raise(r, result, now)
			}
		}
	}
	for name, times := range p.firing {
		for i := 0; i < len(times); i += 2 {
			fired = append(fired, name+" "+strings.Join(times[i:min(i+2, len(times))], "-"))
			if i+1 == len(times) {
				fired[len(fired)-1] += "-"
			}
		}
	}
	slices.Sort(fired)
	return fired
}

func (p *prometheus) query(expr string, now time.Duration) promql.Vector {
	p.t.Helper()
	q, err := p.engine.NewInstantQuery(p.t.Context(), p, nil, expr, time.UnixMilli(now.Milliseconds()))
	must(p.t, err)
	defer q.Close()
	result := q.Exec(p.t.Context())
	v, err := result.Vector()
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	return slices.Clone(v)
}

// record keeps what a recording rule has given, and that it has not given what it gave before.
func (p *prometheus) record(r alertRule, result promql.Vector, now time.Duration) {
	given := map[string]bool{}
	for _, s := range result {
		lset := labels.NewBuilder(s.Metric).Set(model.MetricNameLabel, r.Record).Labels()
		given[lset.String()] = true
		p.append(lset, now, s.F)
	}
	for name, s := range p.all {
		if s.lset.Get(model.MetricNameLabel) == r.Record && !given[name] {
			p.append(s.lset, now, math.Float64frombits(value.StaleNaN))
		}
	}
}

// raise begins alerts, has those fire that have been pending for long enough, and ends others.
func (p *prometheus) raise(r alertRule, result promql.Vector, now time.Duration) {
	p.t.Helper()
	given := map[string]bool{}
	for _, s := range result {
		name := r.Alert + labels.NewBuilder(s.Metric).Del(model.MetricNameLabel).Labels().String()
		given[name] = true
		a := p.alerts[name]
		if a == nil {
			a = &raised{since: now}
			p.alerts[name] = a
		}
		if a.last = now; !a.fires && now-a.since >= p.duration(r.For) {
			a.fires = true
			p.firing[name] = append(p.firing[name], now.String())
		}
	}
	for name, a := range p.alerts {
		if !strings.HasPrefix(name, r.Alert+"{") || given[name] || a.fires && now-a.last < p.duration(r.KeepFiringFor) {
			continue
		}
		if a.fires {
			p.firing[name] = append(p.firing[name], now.String())
		}
		delete(p.alerts, name)
	}
}

func (p *prometheus) duration(text string) time.Duration {
	p.t.Helper()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	must(p.t, err)
	return d
}

func (p *prometheus) append(lset labels.Labels, at time.Duration, v float64) {
	name := lset.String()
	if p.all[name] == nil {
		p.all[name] = &storedSeries{lset: lset}
	}
	s := p.all[name]
	if math.IsNaN(v) && (len(s.samples) == 0 || math.IsNaN(s.samples[len(s.samples)-1].F())) {
		return // it was not there before either
	}
	s.samples = append(s.samples, sample{at.Milliseconds(), v})
}
