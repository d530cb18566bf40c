// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
)

// reasons are all that the source knows, but for none.
func reasons(t *testing.T) (all []Reason) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "decision.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(strings.ToLower(spec.Names[0].Name), "reason") {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if value != "" {
			all = append(all, Reason(value))
		}
		return true
	})
	return all
}

// jargon are words that somebody who has not read how rollouts work does not know.
func jargon() *regexp.Regexp {
	return regexp.MustCompile(`(?i:\b(?:ledger|slot|shadow|epoch|cas|uid|quorum|cusum|soak\w*|fence|cordon\w*|crd?|pdb)\b)|\b[a-z]+[A-Z]\w*`)
}

// Every reason has sentences of its own, in words that need no explanation, and each says what would change it.
func TestEveryReasonIsExplained(t *testing.T) {
	seen := map[string]Reason{}
	all := reasons(t)
	if len(all) < 34 {
		t.Fatalf("found %d reasons in the source, want at least 34: %v", len(all), all)
	}
	for _, r := range all {
		d := Decisions{Phase: Running, Nodes: []Decision{{Node: "n", UID: "u", Why: &Why{Reason: r, Message: "details"}}}}
		e, ok := d.Why("n")
		switch {
		case !ok || e.What == "" || e.Change == "":
			t.Errorf("%s: %+v, want it to say what it is and what changes it", r, e)
		case seen[e.What] != "":
			t.Errorf("%s and %s have the same text: %s", r, seen[e.What], e.What)
		case strings.Contains(e.What, string(r)):
			t.Errorf("%s has no text of its own: %s", r, e.What)
		}
		if word := jargon().FindString(e.What + " " + e.Change); word != "" {
			t.Errorf("%s: %q is no word for everybody: %s. %s.", r, word, e.What, e.Change)
		}
		if text := e.String(); !regexp.MustCompile(`^Node "n": [a-z].*\. In detail: details\..* [A-Z][^.]*\.`).MatchString(text) || strings.Contains(text, "..") {
			t.Errorf("%s: these are no sentences: %s", r, text)
		}
		seen[e.What] = r
	}
}

// The answer names who is in front, since when, until when, and the verb that helps in this phase.
func TestWhyInAFleet(t *testing.T) {
	f := newFleet(t, 5)
	f.p.Stages = []Stage{{Name: "canary", Size: size(2), Soak: time.Hour}, {Name: "rest", Approval: true}}
	f.node("node-001").Health = Verdict{Answer: Deny, Message: "3 of 4 replicas"}
	f.passes(2)
	f.silent["node-000"] = true
	ask := func(do Do) func() {
		return func() { f.p.Verb = Verb{Request: string(do) + f.now.String(), Do: do} }
	}
	for i, c := range []struct {
		when         func()
		node, text   string
		behind       []string
		ahead        int
		verbs        []Do
		since, until bool
	}{
		{when: func() {}, node: "node-002", text: "1 nodes of the domain are away", behind: []string{"node-000"}},
		{when: func() {}, node: "node-003", text: "1 more have their turn", behind: []string{"node-000"}, ahead: 1},
		{when: func() {}, node: "node-001", text: "3 of 4 replicas", verbs: []Do{Promote}},
		{when: func() {}, node: "node-000", text: "under way", verbs: []Do{Abort}, since: true, until: true},
		{when: func() { f.now = f.now.Add(2 * time.Hour) }, node: "node-000", text: "not come to an end in time", verbs: []Do{Acknowledge}, since: true},
		{when: func() {}, node: "node-002", text: "behind node-000.", behind: []string{"node-000"}, verbs: []Do{Abort}},
		{when: func() { f.silent = map[string]bool{}; f.passes(60, AtGate) }, node: "node-003", text: "being watched", verbs: []Do{Promote}, since: true, until: true},
		{when: ask(Pause), node: "node-003", text: "paused", verbs: []Do{Resume}},
		{when: ask(Resume), node: "node-003", text: "being watched", verbs: []Do{Promote}, since: true, until: true},
		{when: ask(Abort), node: "node-003", text: "aborted", verbs: []Do{Resume}},
	} {
		c.when()
		d := f.pass()
		e, ok := d.Why(c.node)
		if !ok || !slices.Equal(e.Behind, c.behind) || e.Ahead != c.ahead || !slices.Equal(e.Verbs, c.verbs) || !strings.Contains(e.String(), c.text) ||
			e.Since.IsZero() == c.since || e.Until.IsZero() == c.until {
			t.Errorf("%d, %s: got %+v; want %+v: %s", i, c.node, e, c, e.String())
		}
	}
	if e, ok := f.last.Why("nobody"); ok {
		t.Errorf("a node that is not there is explained: %+v", e)
	}
}
