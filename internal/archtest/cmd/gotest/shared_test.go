// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belayproject/belay/internal/archtest"
	"github.com/belayproject/belay/internal/raceshare"
)

// TestSharesAreTold shows that the report counts the tests that have left out something, each once, and that they do not fail.
func TestSharesAreTold(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "go.mod", module)
	write(t, dir, "a_test.go", "package m\n\nimport \"testing\"\n\nfunc TestOther(t *testing.T) { t.Attr(\"colour\", \"green\") }\n\n"+
		"func TestLong(t *testing.T) {\n\tfor range 2 {\n\t\tt.Run(\"\", func(t *testing.T) { t.Attr(\""+raceshare.Attribute+"\", \"one in ten\") })\n\t}\n}\n")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-race", "off", dir}, &out); err != nil {
		t.Errorf("got error %v:\n%s", err, out.String())
	}
	const want = "\n1 tests did a share of their work under the race detector: make searches does all of it\n4 passed, 0 failed, 0 skipped\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("the output does not end with %q:\n%s", want, out.String())
	}
}

// tiers is a repository of two modules with tests of both tiers; code is added to a test file of the second.
func tiers(t *testing.T, code string) (root, second string) {
	t.Helper()
	root = t.TempDir()
	second = filepath.Join(root, "examples")
	for _, dir := range []string{"internal/tier", "lkg", "examples/agent"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(repository + "/internal/tier/tier.go")
	if err != nil {
		t.Fatal(err)
	}
	const library, head = archtest.Module, "\n\nimport (\n\t\"testing\"\n\n\t\"" + archtest.Module + "/internal/tier\"\n)\n\n"
	write(t, root, "go.mod", "module "+library+"\n\ngo 1.25\n")
	write(t, root, "internal/tier/tier.go", string(text))
	write(t, root, "lkg/a_test.go", "package lkg"+head+"func TestPure(*testing.T) {}\n\nfunc TestPart(t *testing.T) {\n"+
		"\tt.Run(\"pure\", func(*testing.T) {})\n\tt.Run(\"root\", func(t *testing.T) { tier.System(t, tier.Root) })\n}\n")
	write(t, second, "go.mod", "module "+library+"/examples\n\ngo 1.25\n\nrequire "+library+" v0.0.0\n\nreplace "+library+" => ../\n")
	write(t, second, "agent/a_test.go", "package agent"+head+"func TestPure(*testing.T) {}\n\nfunc TestKubelet(t *testing.T) { tier.System(t, tier.Kubelet) }\n")
	write(t, second, "agent/b_test.go", code)
	return root, second
}

// TestTiers shows that what one tier leaves out another one runs: each test runs in one of them, in each module, and
// a test that is marked and does not run is a failure.
func TestTiers(t *testing.T) {
	const head = "package agent\n\nimport (\n\t\"testing\"\n\n\t\"" + archtest.Module + "/internal/tier\"\n)\n\n"
	const proof = "func TestProof(t *testing.T) { tier.LeaveToProofs(t, \"it\") }\n"
	for _, c := range []struct {
		name, code string
		args       []string
		want       error
		says       string
	}{
		{"the default tier", "", nil, nil, "\n2 tests are left to make test-system\n4 passed, 0 failed, 0 skipped\n"},
		{"the system tier", "", []string{"-system"}, nil, "\n4 passed, 0 failed, 0 skipped\n"}, // TestPart has two subtests
		{"a marked test that is not built", "//go:build never\n\n" + head + "func TestGone(t *testing.T) { tier.System(t) }\n",
			[]string{"-system"}, errFailed, "did not run: examples/agent.TestGone\n"},
		{"a marked test that is skipped", head + "func TestSkips(t *testing.T) { tier.System(t); t.Skip(\"no kubelet\") }\n",
			[]string{"-system"}, errFailed, "skipped without leave: examples/agent.TestSkips: "},
		{"a marked test that fails", head + "func TestFails(t *testing.T) { tier.System(t); t.Error(\"broken\") }\n",
			[]string{"-system"}, errFailed, "\n4 passed, 1 failed, 0 skipped\n"},
		{"a test without a mark that needs more", head + "func TestBare(t *testing.T) { tier.Require(t) }\n", nil, errFailed, "calls tier.System first"},
		{"one package", "", []string{"-only", "examples/agent"}, nil, "\n1 tests are left to make test-system\n1 passed, 0 failed, 0 skipped\n"},
		{"one package of the system tier", "", []string{"-system", "-only", "lkg"}, nil, "\n3 passed, 0 failed, 0 skipped\n"},
		{"a proof and a part", head + proof + "\nfunc TestWhole(t *testing.T) { tier.RunsWhole(t) }\n", nil, nil,
			"\n2 tests leave their work, or a part of it, to make proofs\n5 passed, 0 failed, 0 skipped\n"},
		{"the proofs", head + proof + "\nfunc TestWhole(t *testing.T) {\n\tif !tier.RunsWhole(t) {\n\t\tt.Error(\"a part\")\n\t}\n}\n",
			[]string{"-proofs"}, nil, "\n2 passed, 0 failed, 0 skipped\n"},
		{"a proof that another tier has", head + "func TestBoth(t *testing.T) {\n\ttier.LeaveToProofs(t, \"it\")\n\ttier.System(t)\n}\n",
			[]string{"-proofs"}, errFailed, "did not run: examples/agent.TestBoth\n"},
		{"the list of proofs", head + proof, []string{"-proofs", "-list"}, nil, "examples/agent.TestProof\n"},
		{"the list", "", []string{"-list"}, nil, "examples/agent.TestKubelet\nlkg.TestPart\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.code == "" {
				c.code = "package agent\n"
			}
			root, second := tiers(t, c.code)
			var out bytes.Buffer
			if err := run(t.Context(), append(c.args, "-race", "off", root, second), &out); !errors.Is(err, c.want) {
				t.Errorf("got error %v, want %v", err, c.want)
			}
			if !strings.Contains("\n"+out.String(), c.says) {
				t.Errorf("the output lacks %q:\n%s", c.says, out.String())
			}
		})
	}
}
