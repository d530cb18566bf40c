// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fields_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/fields"
)

// A Guard is what a Syncer asks.
var _ configsync.ChangePolicy = fields.Guard{}

func policy(t *testing.T, fallback fields.Action, rules ...fields.Rule) *fields.Policy {
	t.Helper()
	p, err := fields.New(fallback, rules)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func decide(t *testing.T, p *fields.Policy, from, to, pool string) fields.Decision {
	t.Helper()
	d, err := p.Decide([]byte(from), []byte(to), pool)
	if err != nil {
		t.Fatalf("Decide: %v", err)
	}
	return d
}

func paths(d fields.Decision) string {
	var all []string
	for _, c := range d.Changes {
		all = append(all, c.Path)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// C-20: what counts as a changed field, by its path.
func TestChangesAreTheEndsThatDiffer(t *testing.T) {
	p := policy(t, fields.Restart)
	for _, c := range []struct{ from, to, want string }{
		{"a: 1", "{\"a\": 1}", ""},
		{"", "a: 1\nb: {c: x}", "a b.c"},
		{"a: {b: 1, c: 2}", "a: {b: 1, c: 3}", "a.c"},
		{"a: [1, 2, 3]", "a: [1, 3]", "a[1] a[2]"},
		{"a: [{b: 1}]", "a: [{b: 2}]", "a[0].b"},
		{"x: 1\na: {b: 1}", "x: 1", "a.b"},
		{"x: 1\na: {}", "x: 1", "a"},
		{"a: {b: 1}", "a: {}", "a a.b"},
		{"a: null", "a: []", "a"},
		{"a: []", "a: {}", "a"},
		{"x: 1", "x: 1\na: null", "a"},
		{"a: 1", "a: {b: {c: 1}}", "a a.b.c"},
		{"a: {b: 1}", "a: [1]", "a.b a[0]"},
		{"a: 1", "a: \"1\"", "a"},
		{"a: true", "a: yes", ""},
		{"a: {memory.available: 1}", "a: {memory.available: 2}", "a[\"memory.available\"]"},
		{"a/b: {c_d-e: 1}", "a/b: {c_d-e: 2}", "a/b.c_d-e"},
		{"\"a\\\"]b\": 1", "\"a\\\"]b\": 2", "[\"a\\\"]b\"]"},
		{"[1]", "[2, 3]", "[0] [1]"},
		{"[1]", "a: 1", "[0] a"},
	} {
		for _, way := range [][2]string{{c.from, c.to}, {c.to, c.from}} {
			if got := paths(decide(t, p, way[0], way[1], "")); got != c.want {
				t.Errorf("from %q to %q the fields %q differ, want %q", way[0], way[1], got, c.want)
			}
		}
	}
}

// C-20: the rule with the most elements counts, and of those of one length the one that spells out what the other has a star for.
func TestLongestRuleCounts(t *testing.T) {
	p := policy(t, fields.Restart,
		fields.Rule{Path: "a", Action: fields.Drain},
		fields.Rule{Path: "a.*", Action: fields.Reload},
		fields.Rule{Path: "a.b", Action: fields.Live},
		fields.Rule{Path: "a.b.c", Action: fields.Forbid},
		fields.Rule{Path: "*.b.d", Action: fields.Drain},
		fields.Rule{Path: "a.*.e", Action: fields.Drain},
		fields.Rule{Path: "*.x.e", Action: fields.Live},
		fields.Rule{Path: "list[*].effect", Action: fields.Drain},
		fields.Rule{Path: "list[0]", Action: fields.Live},
		fields.Rule{Path: "[\"a.b\"][\"*\"]", Action: fields.Live},
	)
	for path, want := range map[string]struct {
		action fields.Action
		rule   string
	}{
		"{a: {z: 1}}":              {fields.Reload, "a.*"},
		"{a: {b: {z: 1}}}":         {fields.Live, "a.b"},
		"{a: {b: {c: {d: [1]}}}}":  {fields.Forbid, "a.b.c"},
		"{a: {b: {d: 1}}}":         {fields.Drain, "*.b.d"},
		"{a: {x: {e: 1}}}":         {fields.Drain, "a.*.e"},
		"{q: {x: {e: 1}}}":         {fields.Live, "*.x.e"},
		"{q: {x: {f: 1}}}":         {fields.Restart, ""},
		"{a: 1}":                   {fields.Drain, "a"},
		"{a: [1]}":                 {fields.Drain, "a"},
		"{list: [{effect: 1}]}":    {fields.Drain, "list[*].effect"},
		"{list: [{other: 1}]}":     {fields.Live, "list[0]"},
		"{list: {a: {effect: 1}}}": {fields.Restart, ""},
		"{\"a.b\": {\"*\": 1}}":    {fields.Live, "[\"a.b\"][\"*\"]"},
		"{\"a.b\": {b: 1}}":        {fields.Restart, ""},
	} {
		d := decide(t, p, "", path, "")
		if len(d.Changes) != 1 || d.Changes[0].Action != want.action || d.Changes[0].Rule != want.rule {
			t.Errorf("%s: %+v, want %s by rule %q", path, d.Changes, want.action, want.rule)
		}
	}
}

// The strongest action of all changes is that of the whole, with the words of a rollout.
func TestStrongestActionWins(t *testing.T) {
	p := policy(t, fields.Forbid,
		fields.Rule{Path: "live", Action: fields.Live}, fields.Rule{Path: "reload", Action: fields.Reload},
		fields.Rule{Path: "restart", Action: fields.Restart}, fields.Rule{Path: "drain", Action: fields.Drain})
	for doc, want := range map[string][3]string{
		"":                              {"", "None", "NonIntrusive"},
		"live: 1":                       {"Live", "None", "NonIntrusive"},
		"live: 1\nreload: 1":            {"Reload", "Restart", "NonIntrusive"},
		"reload: 1\nrestart: 1":         {"Restart", "Restart", "NonIntrusive"},
		"drain: 1\nlive: 1\nrestart: 1": {"Drain", "Drain", "Intrusive"},
		"drain: 1\nlive: 1\nother: 1":   {"Forbid", "", ""},
	} {
		d := decide(t, p, "", doc, "")
		if got := [3]string{string(d.Action), d.Disruption(), d.Class()}; got != want {
			t.Errorf("%q asks for %q, want %q", doc, got, want)
		}
		if (d.Err() != nil) != (d.Action == fields.Forbid) {
			t.Errorf("%q: error %v with action %s", doc, d.Err(), d.Action)
		}
	}
}

// KEP-281's question: a field may be changed by some pools only. The refusal names field, pool and reason, never a value.
func TestPoolsMayBeKeptFromAField(t *testing.T) {
	p := policy(t, fields.Live,
		fields.Rule{Path: "a", Action: fields.Restart, Pools: []string{"canary", "batch"}, Why: "it is on trial there"},
		fields.Rule{Path: "b", Action: fields.Forbid})
	for pool, want := range map[string]string{
		"canary": "", "batch": "",
		"web": "field policy: field a.k must not be changed in pool \"web\": it is on trial there",
		"":    "field policy: field a.k must not be changed by a node without a pool: it is on trial there",
	} {
		word, err := fields.Guard{Policy: p, Pool: pool}.Judge([]byte("a: {k: secret-1}"), []byte("a: {k: secret-2}"))
		if text := errorText(err); text != want || (err == nil) != (word == "Restart") {
			t.Errorf("pool %q: %q, %v; want %q", pool, word, err, want)
		}
	}
	_, err := fields.Guard{Policy: p, Pool: "web"}.Judge(nil, []byte("b: secret-1"))
	var refused *fields.RefusedError
	if !errors.As(err, &refused) || err.Error() != "field policy: field b must not be changed" {
		t.Errorf("a forbidden field: %v", err)
	}
	if _, err := (fields.Guard{}).Judge(nil, []byte("b: 1")); err == nil || err.Error() != "field policy: field b must not be changed" {
		t.Errorf("a Guard without a policy: %v, want that it refuses", err)
	}
	if _, err := (fields.Guard{Policy: p}).Judge([]byte("a: 1"), []byte("a: &x secret-1")); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a document that can't be read: %v, want an error without a value", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// An error names a bounded number of fields of bounded length.
func TestErrorsAreBounded(t *testing.T) {
	var b strings.Builder
	for _, c := range "abcdefghijklmnop" {
		b.WriteString(strings.Repeat(string(c), 200) + ": 1\n")
	}
	err := decide(t, policy(t, fields.Forbid), "", b.String(), "").Err()
	if err == nil || len(err.Error()) > 1200 || !strings.HasSuffix(err.Error(), "; and 8 more fields") {
		t.Errorf("error of %d bytes: %v", len(errorText(err)), err)
	}
}

func TestPolicyIsStrict(t *testing.T) {
	const head = "apiVersion: belay.dev/v1alpha1\nkind: FieldPolicy\n"
	for doc, want := range map[string]string{
		"kind: FieldPolicy\ndefault: Live":                       "field \"apiVersion\" must be",
		"apiVersion: belay.dev/v1alpha1\nkind: X\ndefault: Live": "field \"kind\" must be",
		head:                             "field \"default\" must be Live",
		head + "default: live":           "field \"default\" must be Live",
		head + "default: Live\nrule: []": "field \"rule\" is not known",
		head + "default: Live\nrules: [{path: a}]":                                        "rules[0]: path \"a\": action must be",
		head + "default: Live\nrules: [{action: Live}]":                                   "rules[0]: path: must not be empty",
		head + "default: Live\nrules: [{path: a, action: Live},{path: a, action: Drain}]": "rules[1]: path \"a\": there is a rule for it already",
		head + "default: Live\nrules: [{path: a, action: Forbid, pools: [x]}]":            "pools must be empty with Forbid",
		head + "default: Live\nrules: [{path: a, action: Live, pools: [\"\"]}]":           "pools must have names",
		head + "default: &x Live":                                                         "anchors",
	} {
		if _, err := fields.Parse([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", doc, err, want)
		}
	}
	for path, want := range map[string]string{
		".a": "(at byte 0)", "a.": "(at byte 2)", "a..b": "(at byte 2)", "a b": "(at byte 0)", "a[": "(at byte 1)", "a[01]": "(at byte 1)",
		"a[-1]": "(at byte 1)", "a[\"x]": "(at byte 1)", "a[\"x\"": "(at byte 1)", "a[0]b": "(at byte 4)", "a[**]": "(at byte 1)",
		strings.Repeat("a.", 64) + "a": "more than 64 elements",
	} {
		if _, err := fields.New(fields.Live, []fields.Rule{{Path: path, Action: fields.Live}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("path %q: %v, want an error with %q", path, err, want)
		}
	}
	if _, err := fields.New(fields.Live, make([]fields.Rule, fields.MaxRules+1)); err == nil || !strings.Contains(err.Error(), "1001 rules") {
		t.Errorf("too many rules: %v", err)
	}
}

// What is forbidden in one step is forbidden in any number of steps.
func TestNoWayAround(t *testing.T) {
	p := policy(t, fields.Live, fields.Rule{Path: "a", Action: fields.Forbid}, fields.Rule{Path: "a.b", Action: fields.Live})
	docs := []string{"", "x: 1", "a: {}", "a: {b: 1}", "a: {b: {}}", "a: []", "a: null", "a: {c: 1}", "a: {b: 1, c: 1}", "a: [1]", "a: 1"}
	allowed := func(from, to string) bool { return decide(t, p, from, to, "").Err() == nil }
	for _, x := range docs {
		for _, y := range docs {
			for _, z := range docs {
				if allowed(x, y) && allowed(y, z) && !allowed(x, z) {
					t.Errorf("from %q to %q is forbidden, but not by way of %q", x, z, y)
				}
			}
		}
	}
	if !slices.ContainsFunc(docs, func(d string) bool { return allowed("a: {b: 1}", d) && d != "a: {b: 1}" }) {
		t.Error("nothing is allowed, so nothing was shown")
	}
}
