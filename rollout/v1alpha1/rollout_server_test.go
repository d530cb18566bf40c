// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// rolloutSpec is a spec in JSON: of v2 for all nodes, or for groups if more has some.
func rolloutSpec(t *testing.T, more string) string {
	t.Helper()
	spec := map[string]any{}
	if err := yaml.Unmarshal([]byte(more), &spec); err != nil {
		t.Fatalf("%s: %v", more, err)
	}
	add := func(key string, value any) {
		if _, there := spec[key]; !there {
			spec[key] = value
		}
	}
	add("revision", map[string]any{"name": "v2", "digest": digest})
	if spec["groups"] == nil {
		add("selector", map[string]any{})
	}
	for key, value := range spec {
		if value == "absent" {
			delete(spec, key)
		}
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const (
	twoGroups = "groups: [{name: a, selector: {}}, {name: b, nodes: [n1]}]\n"
	amount    = " must be a number of nodes from 1 on, or a percentage from 1% to 100%"
)

// R-RO-16: a plan is accepted as a list and by selectors. The server refuses a Rollout that contradicts itself, and says what would be right.
func TestServerChecksRollouts(t *testing.T) {
	s := serve(t, v1alpha1.RolloutKind, v1alpha1.RolloutsResource)
	alone := sole{}
	for _, c := range slices.Concat(groupRollouts(), capRollouts(), moreRollouts()) {
		t.Run(c[0], func(t *testing.T) { judgeStrictly(t, s, alone, c[0], c[1]) })
	}
	rolloutChanges(t, s, alone)
	alone.each(t, v1alpha1.RolloutKind)
}

// groupRollouts are specs with revisions, groups and stages, and what the server has against them.
func groupRollouts() [][2]string {
	return [][2]string{
		{"{}", ""},
		{everything, ""},
		{"detectors: []", ""},
		{"revision: absent", "revision: Required value"},
		{"revision: {name: v2}", "digest: Required value"},
		{"revision: {name: v2, digest: 'md5:0'}", "should match"},
		{"revision: {name: 'v2@x', digest: '" + digest + "'}", "should match"},
		{"selector: absent", "exactly one of selector and groups must be set"},
		{twoGroups + "selector: {}", "exactly one of selector and groups must be set"},
		{"groups: []", "should have at least 1 items"},
		{"groups: [{name: a}]", "a group must have exactly one of selector and nodes"},
		{"groups: [{name: a, selector: {}, nodes: [n1]}]", "a group must have exactly one of selector and nodes"},
		{"groups: [{name: a, selector: {}}, {name: a, nodes: [n1]}]", "each group must have a name of its own"},
		{"groups: [{name: a, nodes: []}]", "should have at least 1 items"},
		{"stages: [{name: a}, {name: a}]", "each stage must have a name of its own"},
		{"stages: [{name: s, groups: [all]}, {name: t}]", "groups of a stage must be names of spec.groups"},
		{twoGroups + "stages: [{name: s, groups: [a, c]}, {name: t}]", "groups of a stage must be names of spec.groups"},
		{twoGroups + "stages: [{name: s, groups: [a, a]}, {name: t}]", "a stage must name each group once"},
		{twoGroups + "stages: [{name: s, groups: [a]}, {name: t, groups: [b], size: 1}]", "each group must be in a stage without a size"},
		{twoGroups + "stages: [{name: s, groups: [a]}, {name: t, groups: [b]}]", ""},
		{"stages: [{name: s, size: 1}]", "each group must be in a stage without a size"},
		{"stages: [{name: s, size: 0}, {name: t}]", "size" + amount},
		{"stages: [{name: s, size: '101%'}, {name: t}]", "size" + amount},
		{"stages: [{name: s, soak: '-1h'}, {name: t}]", "must be a duration such as 2h, and not negative"},
		{"stages: [{name: s, soak: '0s', caps: [{scope: Total, max: 1}]}]", ""},
	}
}

// capRollouts are specs with caps and settings.
func capRollouts() [][2]string {
	return [][2]string{
		{"stages: [{name: s, caps: [{scope: Total, max: 0}]}]", "max" + amount},
		{"caps: [{scope: Total, max: 0}]", "max" + amount},
		{"caps: [{scope: Total, max: -1}]", "max" + amount},
		{"caps: [{scope: Total, max: 3000000000}]", "max" + amount},
		{"caps: [{scope: Total, max: '0%'}]", "max" + amount},
		{"caps: [{scope: Total, max: '101%'}]", "max" + amount},
		{"caps: [{scope: Total, max: '5'}]", "max" + amount},
		{"caps: [{scope: Total, max: '100%'}, {scope: Total, max: '1%'}, {scope: Total, max: 1}]", ""},
		{"caps: [{scope: Total}]", "max: Required value"},
		{"caps: [{scope: Rack, max: 1}]", "Unsupported value"},
		{"caps: [{scope: Total, key: a, max: 1}]", "a cap with scope Total must have no key"},
		{"caps: [{scope: Class, key: Reboot, max: 1}]", "the key of a cap with scope Class must be Intrusive or NonIntrusive"},
		{"caps: [{scope: Group, key: a, max: 1}]", "the key of a cap with scope Group must be the name of one of spec.groups"},
		{twoGroups + "caps: [{scope: Group, key: a, max: 1}, {scope: Group, max: 1}, {scope: Zone, key: z, max: 1}]", ""},
		{twoGroups + "caps: [{scope: Group, key: c, max: 1}]", "the key of a cap with scope Group must be the name of one of spec.groups"},
		{"attempts: 0", "greater than or equal to 1"},
		{"stuckDrain: Ignore", "Unsupported value"},
		{"order: Random", "Unsupported value"},
		{"order: Rollback", ""},
		{"maxBroken: 0", "maxBroken" + amount},
		{"prefetch: '0%'", "prefetch" + amount},
		{"historyLimit: 51", "less than or equal to 50"},
		{"critical: {}", "critical must have a selector, nodes or both"},
		{"domain: ''", "at least 1 chars long"},
		{"domain: zone_a", "domain must be the name of a DisruptionLedger"},
		{"domain: zone-a.example", ""},
		{"paused: true", "unknown field"},
	}
}

// judgeStrictly asks the server about a spec, in which it may ignore nothing.
func judgeStrictly(t *testing.T, s served, alone sole, spec, want string) {
	t.Helper()
	options := metav1.CreateOptions{DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict}
	_, err := s.Create(deadline(t), s.object("checked", rolloutSpec(t, spec)), options)
	if want == "unknown field" {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		return
	}
	alone.judge(t, err, want)
}

// moreRollouts are specs with windows, durations, detectors and verbs, and what the server has against them.
func moreRollouts() (rows [][2]string) {
	row := func(spec, want string) { rows = append(rows, [2]string{spec, want}) }
	for field, example := range map[string]string{"cycle": "10m", "retryAfter": "1m", "pauseLimit": "24h"} {
		row(field+": 0s", "must be a duration such as "+example+", above 0")
		row(field+": 90s", "")
	}
	for field, example := range map[string]string{"commit": "5m", "drain": "1h", "apply": "30m", "verify": "30m"} {
		row("deadlines: {"+field+": -1s}", "must be a duration such as "+example+", above 0")
		row("deadlines: {"+field+": 90s}", "")
	}
	row("cycle: 1 hour", "cycle")
	window := func(fields, want string) { row("windows: [{"+fields+"}]", want) }
	const open, closed = "open must be a time of day from 00:00 to 23:59", "close must be a time of day from 00:01 to 24:00"
	window("open: '00:00', close: '24:00'", "")
	window("open: '23:59', close: '00:01', days: [Monday, Sunday], zone: America/Argentina/Buenos_Aires", "")
	window("open: '24:00', close: '12:00'", open)
	window("open: '9:00', close: '12:00'", open)
	window("open: '09:60', close: '12:00'", open)
	window("open: '09:00', close: '24:01'", closed)
	window("open: '09:00', close: '00:00'", closed)
	window("open: '09:00', close: noon", closed)
	window("open: '09:00', close: '09:00'", "a window must close at another time than it opens")
	window("open: '09:00', close: '10:00', zone: Local", "zone must be the name of a time zone such as Europe/Berlin")
	window("open: '09:00', close: '10:00', zone: ../../x", "zone must be the name of a time zone such as Europe/Berlin")
	window("open: '09:00', close: '10:00', days: [monday]", "Unsupported value")
	window("open: '09:00', close: '10:00', days: [Monday, Monday]", "Duplicate value")
	window("open: '09:00', close: '10:00', days: []", "should have at least 1 items")
	detector := func(fields, want string) { row("detectors: [{"+fields+"}]", want) }
	detector("", "a detector must have exactly one of cusum and failures")
	detector("cusum: {}, failures: {at: 1}", "a detector must have exactly one of cusum and failures")
	detector("cusum: {good: '0.05%', bad: '100%', limit: '12'}", "")
	detector("cusum: {good: '10%'}", "good must be below bad")
	detector("cusum: {bad: '1%'}", "good must be below bad")
	detector("cusum: {good: '0.0%'}", "good must be a percentage above 0% and below 100%")
	detector("cusum: {bad: '101%'}", "bad must be a percentage above 0% and up to 100%")
	detector("cusum: {limit: '0'}", "limit must be a number above 0")
	detector("failures: {at: 1}", "")
	detector("failures: {at: 0}", "at"+amount)
	detector("failures: {at: '5%', of: Nodes}", "")
	detector("failures: {at: '5%', of: Attempted, after: 20}", "")
	detector("failures: {at: '5%'}", "of must be set for a percentage")
	detector("failures: {at: 5, of: Nodes}", "of must be set for a percentage")
	detector("failures: {at: '5%', of: Nodes, after: 20}", "after goes with of: Attempted only")
	for _, v := range rollout.Verbs() {
		if v.Do != rollout.Acknowledge {
			row(fmt.Sprintf("verb: {request: q, do: %s} # %s", v.Do, v.In), "")
		}
	}
	row("verb: {do: Pause}", "request: Required value")
	row("verb: {request: q, do: Stop}", "Unsupported value")
	row("verb: {request: q, do: Acknowledge}", "node must be set for Acknowledge, and for nothing else")
	row("verb: {request: q, do: Acknowledge, node: n1}", "")
	row("verb: {request: q, do: Pause, node: n1}", "node must be set for Acknowledge, and for nothing else")
	row("verb: {request: q, do: Rollback}", "number must be set for Rollback, and for nothing else")
	row("verb: {request: q, do: Rollback, number: 2}", "")
	row("verb: {request: q, do: Pause, number: 2}", "number must be set for Rollback, and for nothing else")
	return rows
}

// rolloutChanges are what a Rollout may become.
func rolloutChanges(t *testing.T, s served, alone sole) {
	t.Helper()
	s.must(s.create("before", rolloutSpec(t, "verb: {request: q1, do: Pause}")))
	if u, err := s.Get(deadline(t), "before", metav1.GetOptions{}); err != nil || u.Object["spec"].(map[string]any)["domain"] != v1alpha1.DefaultDomain {
		t.Errorf("got %v, %v, want domain %q", u, err, v1alpha1.DefaultDomain)
	}
	s.must(s.merge("before", `{"status":{"progress":{"stage":1,"mood":{"of":"all"}}}}`, nil, "status"))
	for _, c := range []struct{ patch, want, subresource string }{
		{`{"spec":{"domain":"other"}}`, "domain must not change", ""},
		{`{"spec":{"domain":null}}`, "", ""},
		{`{"spec":{"revision":{"name":"v3"}}}`, "", ""},
		{`{"spec":{"verb":{"do":"Abort"}}}`, "what was asked for must not change", ""},
		{`{"spec":{"verb":{"do":"Abort","request":"q2"}}}`, "", ""},
		{`{"spec":{"verb":null}}`, "", ""},
		{`{"status":{"progress":null}}`, "status.progress must stay", "status"},
		{`{"status":null}`, "status.progress must stay", "status"},
		{`{"status":{"progress":{"stage":2}}}`, "", "status"},
		{`{"status":{"phase":"Waiting"}}`, "Unsupported value", "status"},
	} {
		t.Run("change/"+c.patch, func(t *testing.T) {
			var subresources []string
			if c.subresource != "" {
				subresources = append(subresources, c.subresource)
			}
			alone.judge(t, s.merge("before", c.patch, dryRun, subresources...), c.want)
		})
	}
}

// What kubectl get prints answers how far a rollout is, what waits, and why.
func TestRolloutColumnsAnswer(t *testing.T) {
	s := serve(t, v1alpha1.RolloutKind, v1alpha1.RolloutsResource)
	s.must(s.create("columns", rolloutSpec(t, "{}")))
	r, o := bigRollout(t, 100, 3)
	o.Policy.Stages = []rollout.Stage{{Name: "canary"}}
	o.Decisions.Counts = rollout.Counts{Selected: 100, Done: 12, InFlight: 3, Failed: 1, Broken: 1}
	o.Decisions.Progress.Refused, o.Decisions.Progress.Handled, o.Decisions.ExpectedEnd = "not now", "q", epoch()
	s.must(s.putStatus(t, "columns", r, o))
	checkColumns(t, "rollouts", "columns", map[string]any{
		"Phase": "Running", "Stage": "canary", "Done": "12/100", "In-Flight": int64(3), "Failed": int64(2), "Waiting-For": "Cap", "Revision": "v2",
		"Refused": "not now", "End": "2026-03-02T12:00:00Z", "Message": "under way",
	})
}

// putStatus stores the status of a rollout.
func (s served) putStatus(t *testing.T, name string, r *v1alpha1.Rollout, o v1alpha1.Observed) error {
	t.Helper()
	status, _ := v1alpha1.StatusOf(r, o, epoch())
	u, err := s.Get(deadline(t), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if u.Object["status"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&status); err != nil {
		return err
	}
	_, err = s.UpdateStatus(deadline(t), u, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

// R-RO-01: the server keeps a status as it is, of 5,000 nodes too, with what a newer version remembers; the same decisions make the same
// status from it.
func TestServerKeepsWhatARolloutRemembers(t *testing.T) {
	s := serve(t, v1alpha1.RolloutKind, v1alpha1.RolloutsResource)
	s.must(s.create("large", rolloutSpec(t, "{}")))
	s.must(s.merge("large", `{"status":{"progress":{"mood":{"of":["all"]}}}}`, nil, "status"))
	r, o := bigRollout(t, 5000, 5000)
	if err := json.Unmarshal([]byte(`{"mood":{"of":["all"]}}`), &r.Status.Progress); err != nil {
		t.Fatal(err)
	}
	s.must(s.putStatus(t, "large", r, o))
	u, err := s.Get(deadline(t), "large", metav1.GetOptions{})
	s.must(err)
	back := rolloutIn(t, u)
	if p, err := v1alpha1.ProgressOf(back.Status); err != nil || !reflect.DeepEqual(p, o.Decisions.Progress) {
		t.Errorf("what is remembered is not what was stored: %v", err)
	}
	if raw, err := json.Marshal(back.Status.Progress); err != nil || !strings.Contains(string(raw), `"mood":{"of":["all"]}`) {
		t.Errorf("what a newer version remembers is lost: %v", err)
	}
	r.Status = back.Status
	if again, _ := v1alpha1.StatusOf(r, o, epoch()); !reflect.DeepEqual(again, back.Status) {
		t.Error("the same decisions are another status")
	}
}

func rolloutIn(t *testing.T, u *unstructured.Unstructured) *v1alpha1.Rollout {
	t.Helper()
	var r v1alpha1.Rollout
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// Phases, verbs, scopes and the like that package rollout knows are those that the server accepts.
func TestWordsAreThoseOfThePackage(t *testing.T) {
	schema := schemaOf(t, v1alpha1.RolloutKind)
	do := []string{string(v1alpha1.DoRollback)}
	for _, v := range rollout.Verbs() {
		do = append(do, string(v.Do))
	}
	var phases []string
	for _, p := range rollout.Phases() {
		phases = append(phases, string(p))
	}
	for name, words := range map[string][]string{
		"do": do, "scope": {string(rollout.Total), string(rollout.ByGroup), string(rollout.ByZone), string(rollout.ByClass)},
		"stuckDrain": {string("Hold"), string(rollout.UndoDrain), string(rollout.ForceDrain)},
		"order":      {string(v1alpha1.OrderDefault), string(v1alpha1.OrderRollback)},
		"of":         {string(rollout.OfNodes), string("Attempted")},
	} {
		checkWords(t, name, words, propertyOf(schema.Properties["spec"], name).Enum)
	}
	checkWords(t, "phase", phases, schema.Properties["status"].Properties["phase"].Enum)
}
