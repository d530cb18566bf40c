// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The parts of an expression that are looked at, in the order in which they are taken out of it.
var (
	rangeOf  = regexp.MustCompile(`\[[^\]]*\]`)
	clause   = regexp.MustCompile(`\b(by|on|without|ignoring|group_left|group_right)\s*\(([^()]*)\)`)
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*\{([^{}]*)\}`)
	matcher  = regexp.MustCompile(`^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*"([^"]*)"\s*$`)
	text     = regexp.MustCompile(`"[^"]*"`)
	word     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*(\s*\()?`)
)

var (
	keywords = []string{"and", "or", "unless", "bool", "offset"}
	callees  = []string{
		"sum", "max", "min", "count", "avg", "topk", "increase", "rate", "absent", "histogram_quantile", "label_replace", "clamp_min", "time", "vector",
		"max_over_time", "last_over_time",
	}
)

// faults are what is wrong with an expression: metrics, labels and values that no series has. It is no parser: what it does not understand
// at all is a fault, too.
func (v vocabulary) faults(expr string) (all []string) {
	if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") || strings.Count(expr, `"`)%2 != 0 {
		all = append(all, "brackets or quotes that are not closed")
	}
	var metrics []string
	rest := rangeOf.ReplaceAllString(expr, "")
	rest = selector.ReplaceAllStringFunc(rest, func(s string) string {
		m := selector.FindStringSubmatch(s)
		metrics = append(metrics, m[1])
		all = append(all, v.matchers(m[1], m[2])...)
		return "0"
	})
	var grouped []string
	rest = clause.ReplaceAllStringFunc(rest, func(s string) string {
		grouped = append(grouped, strings.FieldsFunc(clause.FindStringSubmatch(s)[2], func(r rune) bool { return r == ',' || r == ' ' })...)
		return ""
	})
	rest = text.ReplaceAllString(rest, "")
	for _, w := range word.FindAllString(rest, -1) {
		name, call := strings.CutSuffix(w, "(")
		switch name = strings.TrimSpace(name); {
		case slices.Contains(keywords, name):
		case call && !slices.Contains(callees, name):
			all = append(all, fmt.Sprintf("the function %q, which is not known", name))
		case !call:
			metrics = append(metrics, name)
		}
	}
	return append(all, v.unknown(metrics, grouped)...)
}

// unknown are faults in names.
func (v vocabulary) unknown(metrics, grouped []string) (all []string) {
	if len(metrics) == 0 {
		all = append(all, "no metric at all")
	}
	for _, m := range metrics {
		if v[m] == nil {
			all = append(all, fmt.Sprintf("the metric %q, which belay does not export", m))
		}
	}
	for _, l := range grouped {
		if !slices.ContainsFunc(metrics, func(m string) bool { return v.has(m, l) }) {
			all = append(all, fmt.Sprintf("the label %q, which none of %q has", l, metrics))
		}
	}
	return all
}

// matchers are faults in what stands in braces behind a metric. Values with a variable of a dashboard may be anything.
func (v vocabulary) matchers(metric, braces string) (all []string) {
	for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(braces), ","), ",") {
		m := matcher.FindStringSubmatch(part)
		if m == nil {
			all = append(all, fmt.Sprintf("the matcher %q", part))
			continue
		}
		if v[metric] != nil && !v.has(metric, m[1]) {
			all = append(all, fmt.Sprintf("the label %q, which %q does not have", m[1], metric))
		}
		values := v[metric][m[1]]
		for value := range strings.SplitSeq(m[3], "|") {
			if len(values) > 0 && !strings.Contains(value, "$") && !slices.Contains(values, value) {
				all = append(all, fmt.Sprintf("the value %q of %s of %q, which there is not", value, m[1], metric))
			}
		}
	}
	return all
}

// The check finds what it is for.
func TestExpressionsWithFaultsAreFound(t *testing.T) {
	v := exported(t)
	v.record(alertRule{Record: "belay:led", Expr: `max by (domain) (belay_rollout_phase)`})
	v.record(alertRule{Record: "belay:phase", Expr: `max by (domain, phase) (belay_rollout_phase and on (domain) belay:led)`})
	for expr, want := range map[string]string{
		`belay_rollout_phase{phase="Frozen"} == 1 and on (pod, domain) belay:led`:                             "",
		`sum by (domain) (increase(belay_rollout_pass_errors_total[15m])) > 5`:                                "",
		`histogram_quantile(0.9, sum by (domain, le) (rate(belay_rollout_pass_duration_seconds_bucket[5m])))`: "",
		`sum(belay_rollout_nodes{domain=~"$domain", state=~"Done|Broken"}) by (state)`:                        "",
		`last_over_time(belay:phase{phase="Frozen"}[5m]) == 1`:                                                "",
		`last_over_time(belay:phase{phase="Forzen"}[5m]) == 1`:                                                `"Forzen"`,
		`last_over_time(belay:phase{pod="a"}[5m]) == 1`:                                                       `"pod"`,
		`belay_rollout_phases == 1`:                                                                           `"belay_rollout_phases"`,
		`belay_rollout_phase{phase="Forzen"}`:                                                                 `"Forzen"`,
		`belay_rollout_nodes{state=~"Done|Brokn"}`:                                                            `"Brokn"`,
		`belay_rollout_phase{node="a"}`:                                                                       `"node"`,
		`sum by (node) (belay_rollout_phase)`:                                                                 `"node"`,
		`summ(belay_rollout_phase)`:                                                                           `"summ"`,
		`sum(belay_rollout_phase`:                                                                             "not closed",
		`1 > 0`:                                                                                               "no metric",
		`belay_drain_evictions_total{outcome="Frozen"}`:                                                       `"Frozen"`,
		`belay_rollout_phase{phase=Frozen}`:                                                                   "the matcher",
		`histogram_quantile(0.9, rate(belay_rollout_pass_duration_seconds[5m]))`:                              `"belay_rollout_pass_duration_seconds"`,
		`label_replace(belay_leader{name=~"rollout-.+"}, "domain", "$1", "name", "rollout-(.+)") == 1`:        "",
		`absent(up{job="belay-controller"} == 1)`:                                                             "",
	} {
		got := strings.Join(v.faults(expr), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: found %q, want %q in it", expr, got, want)
		}
	}
}
