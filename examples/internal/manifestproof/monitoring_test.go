// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The shape of a PrometheusRule and of a ServiceMonitor, as far as it is used.
type (
	alertRule struct {
		Record, Alert, Expr, For string
		KeepFiringFor            string `json:"keep_firing_for"`
		Labels, Annotations      map[string]string
	}
	ruleFile struct {
		Spec struct {
			Groups []struct {
				Name  string
				Rules []alertRule
			}
		}
	}
	monitor struct {
		Spec struct {
			JobLabel  string
			Selector  struct{ MatchLabels map[string]string }
			Endpoints []struct{ Port, Path, Interval string }
		}
	}
)

// rules are all rules. What they record is known from then on.
func rules(t *testing.T, v vocabulary) (all []alertRule) {
	t.Helper()
	for _, u := range only(build(t, "monitoring"), "PrometheusRule") {
		var f ruleFile
		must(t, json.Unmarshal(encoded(t, u), &f))
		for _, g := range f.Spec.Groups {
			all = append(all, g.Rules...)
		}
	}
	for _, r := range all {
		if r.Record != "" {
			v.record(r)
		}
	}
	if len(all) < 5 {
		t.Fatalf("there are %d rules: nothing is shown", len(all))
	}
	return all
}

// An alert must be about what is exported: one about a metric that nobody exports is never raised, and nobody notices that.
func TestAlertsAreAboutWhatIsExported(t *testing.T) {
	v := exported(t)
	for _, r := range rules(t, v) {
		name := r.Alert + r.Record
		for _, fault := range v.faults(r.Expr) {
			t.Errorf("%s: the expression has %s", name, fault)
		}
		for _, d := range []string{r.For, r.KeepFiringFor} {
			if _, err := time.ParseDuration(cmp.Or(d, "0s")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, text := range r.Annotations {
			for _, l := range regexp.MustCompile(`\$labels\.([a-z_]+)`).FindAllStringSubmatch(text, -1) {
				if !carries(v, r.Expr, l[1]) {
					t.Errorf("%s: the text has the label %q, which its series do not have", name, l[1])
				}
			}
		}
	}
}

// carries reports whether the series of an expression have a label. Those of a comparison are those of its left side.
func carries(v vocabulary, expr, name string) bool {
	for _, operator := range []string{" and ", " unless ", "\nand ", "\nunless "} {
		expr, _, _ = strings.Cut(expr, operator)
	}
	if by := clause.FindStringSubmatch(expr); by != nil && by[1] == "by" {
		return slices.Contains(strings.FieldsFunc(by[2], func(r rune) bool { return r == ',' || r == ' ' }), name)
	}
	for metric := range v {
		if strings.Contains(expr, metric) && v.has(metric, name) {
			return true
		}
	}
	return false
}

// Whoever is woken finds a page with what it means, how bad it is, how to look, and what to do. And there is no page of an alert that is gone.
func TestEveryAlertHasItsPage(t *testing.T) {
	const dir = root + "/docs/runbooks"
	known := []string{"README.md"}
	for _, r := range rules(t, exported(t)) {
		if r.Alert == "" {
			continue
		}
		known = append(known, r.Alert+".md")
		if !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/runbooks/"+r.Alert+".md") {
			t.Errorf("%s: runbook_url is %q, want it to end with the page's path", r.Alert, r.Annotations["runbook_url"])
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s: a summary, a description or a known severity is missing", r.Alert)
		}
		page, err := os.ReadFile(filepath.Join(dir, r.Alert+".md"))
		if err != nil {
			t.Errorf("%s has no page: %v", r.Alert, err)
			continue
		}
		for _, want := range []string{"# " + r.Alert + "\n", "\n## What it means\n", "\n## What is at risk\n", "\n## Look\n", "\n## Do\n"} {
			if !strings.Contains(string(page), want) {
				t.Errorf("%s.md has no %q", r.Alert, strings.TrimSpace(want))
			}
		}
	}
	pages, err := os.ReadDir(dir)
	must(t, err)
	for _, p := range pages {
		if !slices.Contains(known, p.Name()) {
			t.Errorf("docs/runbooks/%s is of no alert", p.Name())
		}
	}
}

// A dashboard, as far as it is used.
type dashboard struct {
	UID, Title string
	Panels     []struct {
		Title, Type, Description string
		GridPos                  struct{ H, W, X, Y int }
		Targets                  []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Query string }
	}
}

// shownOn is the dashboard that the manifests have.
func shownOn(t *testing.T) (d dashboard) {
	t.Helper()
	made := find[corev1.ConfigMap](t, build(t, "monitoring"), "ConfigMap", "belay-dashboard")
	must(t, json.Unmarshal([]byte(made.Data["belay.json"]), &d))
	if d.UID == "" || d.Title == "" || len(d.Panels) < 6 {
		t.Fatalf("the dashboard %q (%q) has %d panels", d.Title, d.UID, len(d.Panels))
	}
	return d
}

// Each panel shows what is exported and says what it is, and nothing that is exported is left out.
func TestDashboardShowsWhatIsExported(t *testing.T) {
	v := exported(t)
	rules(t, v)
	shown := ""
	for _, p := range shownOn(t).Panels {
		if p.Title == "" || p.Type == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("the panel %q lacks a title, a type, a description or a query", p.Title)
		}
		for _, q := range p.Targets {
			shown += q.Expr + "\n"
			for _, fault := range v.faults(q.Expr) {
				t.Errorf("the panel %q has %s", p.Title, fault)
			}
		}
	}
	for _, metric := range v.metricNames() {
		stem := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(metric, "_bucket"), "_sum"), "_count")
		if !strings.Contains(shown, stem) {
			t.Errorf("nothing on the dashboard shows %q", metric)
		}
	}
}

// No panel lies on another, or beyond the 24 columns of the page.
func TestPanelsLieBesideEachOther(t *testing.T) {
	taken := map[[2]int]string{}
	for _, p := range shownOn(t).Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("the panel %q lies on %q, or beyond the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// The ServiceMonitor finds the controller, and the alerts know it by the job that comes of that.
func TestMonitorFindsTheController(t *testing.T) {
	var m monitor
	must(t, json.Unmarshal(encoded(t, only(build(t, "monitoring"), "ServiceMonitor")[0]), &m))
	all := build(t, "controller")
	service := find[corev1.Service](t, all, "Service", controllerAccount)
	for k, want := range m.Spec.Selector.MatchLabels {
		if service.Labels[k] != want {
			t.Errorf("the Service has the label %s=%q, want %q", k, service.Labels[k], want)
		}
	}
	if job := service.Labels[m.Spec.JobLabel]; job != "belay-controller" {
		t.Errorf("the job is %q by the label %q, want belay-controller, which the alerts name", job, m.Spec.JobLabel)
	}
	deployment := find[appsv1.Deployment](t, all, "Deployment", controllerAccount)
	for k, want := range service.Spec.Selector {
		if deployment.Spec.Template.Labels[k] != want {
			t.Errorf("the pods have the label %s=%q, want %q", k, deployment.Spec.Template.Labels[k], want)
		}
	}
	for _, e := range m.Spec.Endpoints {
		if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == e.Port }) || e.Path != "/metrics" {
			t.Errorf("the endpoint %+v is not served", e)
		}
	}
}
