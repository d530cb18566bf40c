// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"slices"
	"testing"
)

const marked = "package lkg\n\nimport \"" + tierPackage + "\"\n\n"

// TestTierMarksCatch shows the rule about marks of test tiers where they may stand and where a run would miss them.
func TestTierMarksCatch(t *testing.T) {
	const mark = "tier.System(t, tier.Root)"
	for _, c := range []struct{ name, path, code, want string }{
		{"a test", "lkg/a_test.go", "func TestX(t *testing.T) { " + mark + " }", ""},
		{"a subtest", "lkg/a_test.go", "func TestX(t *testing.T) { t.Run(\"\", func(t *testing.T) { " + mark + " }) }", ""},
		{"another function of the package", "lkg/a_test.go", "func help(t *testing.T) { tier.Require(t) }", ""},
		{"a helper", "lkg/a_test.go", "func help(t *testing.T) { " + mark + " }", "a_test.go:8: calls tier.System"},
		{"a helper by value", "lkg/a_test.go", "func help() { f := tier.System; f() }", "calls tier.System"},
		{"a variable", "lkg/a_test.go", "var f = func(t *testing.T) { " + mark + " }", "calls tier.System"},
		{"a method", "lkg/a_test.go", "func (s) TestX(t *testing.T) { " + mark + " }", "calls tier.System"},
		{"TestMain", "lkg/a_test.go", "func TestMain(m *testing.M) { " + mark + " }", "calls tier.System"},
		{"a fuzz target", "lkg/a_test.go", "func FuzzX(t *testing.F) { " + mark + " }", "calls tier.System"},
		{"a part in a test", "lkg/a_test.go", "func TestX(t *testing.T) { _ = tier.RunsWhole(t) }", ""},
		{"a part in a helper", "lkg/a_test.go", "func help(t *testing.T) bool { return tier.RunsWhole(t) }",
			"a_test.go:8: calls tier.RunsWhole"},
		{"a proof in a helper", "lkg/a_test.go", "func help(t *testing.T) { tier.LeaveToProofs(t, \"\") }",
			"calls tier.LeaveToProofs"},
		{"not a test file", "lkg/a.go", "func TestX(t *testing.T) { " + mark + " }", "calls tier.System"},
	} {
		t.Run(c.name, func(t *testing.T) { wantOnly(t, TierMarks(tree(t, c.path, marked+c.code+"\n")), c.want) })
	}
}

// TestSystemTestsFound shows which tests make test-system runs.
func TestSystemTestsFound(t *testing.T) {
	tree := tree(t, "lkg/b_test.go", marked+"func TestB(t *testing.T) { tier.System(t) }\n\nfunc TestC(t *testing.T) { tier.Require(t) }\n",
		"drain/a_test.go", "package drain\n\nimport mark \""+tierPackage+"\"\n\nfunc TestA(t *testing.T) { t.Run(\"\", func(t *testing.T) { mark.System(t) }) }\n",
		"drain/b_test.go", "package drain\n\nimport \"a.b/tier\"\n\nfunc TestB(t *testing.T) { tier.System(t) }\n")
	want := []MarkedTest{{"drain", "TestA"}, {"lkg", "TestB"}}
	if got := SystemTests(tree); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestProofTestsFound shows which tests make proofs runs: what is left out in whole, in a subtest, or in part.
func TestProofTestsFound(t *testing.T) {
	tree := tree(t,
		"lkg/b_test.go", marked+"func TestB(t *testing.T) { tier.LeaveToProofs(t, \"\") }\n\n"+
			"func TestC(t *testing.T) { tier.System(t) }\n",
		"drain/a_test.go", "package drain\n\nimport mark \""+tierPackage+"\"\n\n"+
			"func TestA(t *testing.T) { t.Run(\"\", func(t *testing.T) { mark.LeaveToProofs(t, \"\") }) }\n\n"+
			"func TestP(t *testing.T) { if mark.RunsWhole(t) { t.Log() } }\n")
	want := []MarkedTest{{"drain", "TestA"}, {"drain", "TestP"}, {"lkg", "TestB"}}
	if got := ProofTests(tree); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
