// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
)

func percent(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }

// A wrongField is one way in which a policy can be wrong.
type wrongField struct {
	field, value string
	breaks       func(p *Policy)
}

func wrongFields() []wrongField {
	return []wrongField{
		{"uid", `""`, func(p *Policy) { p.UID = "" }},
		{"target.name", `""`, func(p *Policy) { p.Target.Name = "" }},
		{"target.digest", `""`, func(p *Policy) { p.Target.Digest = "" }},
		{"target.class", `"Rough"`, func(p *Policy) { p.Target.Class = "Rough" }},
		{"target.minAge", "-1s", func(p *Policy) { p.Target.MinAge = -time.Second }},
		{"completed.digest", `""`, func(p *Policy) { p.Completed.Digest = "" }},
		{"groups", "0", func(p *Policy) { p.Groups = nil }},
		{"groups[1].name", `"a"`, func(p *Policy) { p.Groups[1].Name = "a" }},
		{"groups[0]", `"a"`, func(p *Policy) { p.Groups[0].Nodes = []string{"x"} }},
		{"groups[0]", `"a"`, func(p *Policy) { p.Groups[0].Selector = nil }},
		{"groups[1].nodes", `"n1"`, func(p *Policy) { p.Groups[1].Nodes = []string{"n1", "n1"} }},
		{"groups[1].nodes", `""`, func(p *Policy) { p.Groups[1].Nodes = []string{""} }},
		{"groups[0].completed", `"v0"`, func(p *Policy) { r := revision("v0"); p.Groups[0].Completed = &r }},
		{"stages[1].name", `"one"`, func(p *Policy) { p.Stages[1].Name = "one" }},
		{"stages[0].groups[0]", `"z"`, func(p *Policy) { p.Stages[0].Groups = []string{"z"} }},
		{"stages[0].groups[1]", `"a"`, func(p *Policy) { p.Stages[0].Groups = []string{"a", "a"} }},
		{"stages[0].size", "0", func(p *Policy) { p.Stages[0].Size = size(0) }},
		{"stages[0].size", `"101%"`, func(p *Policy) { p.Stages[0].Size = percent("101%") }},
		{"stages[0].size", `"many"`, func(p *Policy) { p.Stages[0].Size = percent("many") }},
		{"stages[0].soak", "-1m", func(p *Policy) { p.Stages[0].Soak = -time.Minute }},
		{"groups[1]", `"b"`, func(p *Policy) { p.Stages[1].Groups = []string{"a"} }},
		{"caps[0].max", "0", func(p *Policy) { p.Caps[0].Max = number(0) }},
		{"caps[0].max", "-3", func(p *Policy) { p.Caps[0].Max = number(-3) }},
		{"caps[0].max", `"0%"`, func(p *Policy) { p.Caps[0].Max = *percent("0%") }},
		{"caps[0].max", `"200%"`, func(p *Policy) { p.Caps[0].Max = *percent("200%") }},
		{"caps[0].scope", `"Rack"`, func(p *Policy) { p.Caps[0].Scope = "Rack" }},
		{"caps[0].key", `"a"`, func(p *Policy) { p.Caps[0].Key = "a" }},
		{"caps[0].key", `"z"`, func(p *Policy) { p.Caps[0] = Cap{Scope: ByGroup, Key: "z", Max: number(1)} }},
		{"caps[0].key", `"z"`, func(p *Policy) { p.Caps[0] = Cap{Scope: ByClass, Key: "z", Max: number(1)} }},
		{"windows[0]", "9h0m0s", func(p *Policy) { p.Windows[0].Close = p.Windows[0].Open }},
		{"windows[0].open", "24h0m0s", func(p *Policy) { p.Windows[0].Open = day }},
		{"windows[0].close", "0s", func(p *Policy) { p.Windows[0].Close = 0 }},
		{"windows[0].days[0]", "7", func(p *Policy) { p.Windows[0].Days = []time.Weekday{7} }},
		{"cycle", "9h0m0s", func(p *Policy) { p.Cycle = 9 * time.Hour }},
		{"drainWithin", "-1s", func(p *Policy) { p.DrainWithin = -time.Second }},
		{"checks.controlPlane", `"Refuse"`, func(p *Policy) { p.Checks.ControlPlane = "Refuse" }},
		{"stages[0].gates[1]", `""`, func(p *Policy) { p.Stages[0].Gates = []string{"smoke", ""} }},
		{"stages[1].gates[1]", `"smoke"`, func(p *Policy) { p.Stages[1].Gates = []string{"smoke", "smoke"} }},
		{"checks.data", `"enforce"`, func(p *Policy) { p.Checks.Data = "enforce" }},
		{"checks.quorum", `"Enforce"`, func(p *Policy) { p.Checks.Quorum, p.LoseQuorum = Enforce, true }},
		{"attempts", "-1", func(p *Policy) { p.Attempts = -1 }},
		{"stuckDrain", `"Kill"`, func(p *Policy) { p.StuckDrain = "Kill" }},
		{"maxBroken", "0", func(p *Policy) { p.MaxBroken = size(0) }},
		{"prefetch", "0", func(p *Policy) { p.Prefetch = size(0) }},
		{"verb.do", `"Stop"`, func(p *Policy) { p.Verb = Verb{Request: "1", Do: "Stop"} }},
		{"verb.request", `""`, func(p *Policy) { p.Verb = Verb{Do: Pause} }},
		{"verb.node", `""`, func(p *Policy) { p.Verb = Verb{Request: "1", Do: Acknowledge} }},
		{"detectors[0]", "<nil>", func(p *Policy) { p.Detectors = []Detector{nil} }},
		// Found when the rollout begins.
		{"groups[1].nodes[1]", `"n9"`, func(p *Policy) { p.Groups[1].Nodes = []string{"n1", "n9"} }},
		{"stages[0]", `"one"`, func(p *Policy) { p.Stages[0].Groups, p.Groups[0].Selector = []string{"a"}, labels.Nothing() }},
	}
}

// Each wrong field of a policy is named, with its value and what would be right (R-RO-16, R-RO-25).
// S-CS-10.
func TestInvalidPolicies(t *testing.T) {
	for _, c := range wrongFields() {
		f := newFleet(t, 0)
		f.add("n0", map[string]string{"pool": "a"})
		f.add("n1", nil)
		f.p.Groups = []Group{{Name: "a", Selector: labels.SelectorFromSet(labels.Set{"pool": "a"})}, {Name: "b", Nodes: []string{"n1"}}}
		f.p.Stages = []Stage{{Name: "one", Size: size(1)}, {Name: "two"}}
		f.p.Caps = []Cap{{Scope: Total, Max: number(2)}}
		f.p.Windows = []Window{{Open: 9 * time.Hour, Close: 17 * time.Hour}}
		if _, err := Plan(f.s, f.p, f.now); err != nil {
			t.Fatalf("a good policy: %v", err)
		}
		c.breaks(&f.p)
		_, err := Plan(f.s, f.p, f.now)
		var field *FieldError
		if !errors.As(err, &field) || !strings.Contains(err.Error(), c.field+" is "+c.value) {
			t.Errorf("got %v, want an error with %s is %s", err, c.field, c.value)
		}
	}
}

// All that is wrong is reported at once.
func TestValidateReportsEverything(t *testing.T) {
	err := Policy{}.Validate()
	for _, field := range []string{"uid", "target.name", "target.digest", "groups"} {
		if err == nil || !strings.Contains(err.Error(), field+" is ") {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}

// A node that a list names may leave later: then the list is not wrong.
func TestListedNodeMayLeave(t *testing.T) {
	f := newFleet(t, 3)
	f.p.Groups = []Group{{Name: "all", Nodes: []string{"node-000", "node-001", "node-002"}}}
	f.pass()
	f.remove("node-002")
	f.passes(50, Completed)
}
