// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package tier

import (
	"fmt"
	"testing"
)

// recorder is a test that notes what is called.
type recorder struct{ said string }

func (r *recorder) Helper()                {}
func (r *recorder) Attr(key, value string) { r.said += fmt.Sprintf("attr %s=%s, ", key, value) }
func (r *recorder) Skip(args ...any)       { r.said += "skip: " + fmt.Sprint(args...) }
func (r *recorder) Fatal(...any)           { r.said += "fatal" }

// TestSystemSkipsOutsideOfItsTier: a marked test runs where the tier is on. Elsewhere it has the attribute by which gotest knows it, and
// its skip says who runs it and what it needs.
func TestSystemSkipsOutsideOfItsTier(t *testing.T) {
	for value, want := range map[string]string{
		On:  "",
		"":  "attr tier=system, skip: make test-system runs it, as it needs root; the right to mount",
		"1": "attr tier=system, skip: make test-system runs it, as it needs root; the right to mount",
	} {
		t.Setenv(Variable, value)
		var r recorder
		if System(&r, Mount, Root); r.said != want {
			t.Errorf("%s=%q: got %q, want %q", Variable, value, r.said, want)
		}
	}
}

// TestProofs: make proofs runs in whole what is marked. Elsewhere the test has the attribute by which gotest knows
// it, and is skipped with its rule, or does a part.
func TestProofs(t *testing.T) {
	for value, want := range map[string]string{
		Proofs: "",
		"":     "attr tier=proofs, skip: make proofs runs it: no cap is broken",
		On:     "attr tier=proofs, skip: make proofs runs it: no cap is broken",
	} {
		t.Setenv(Variable, value)
		var r recorder
		if LeaveToProofs(&r, "no cap is broken"); r.said != want {
			t.Errorf("%s=%q: got %q, want %q", Variable, value, r.said, want)
		}
		r, want = recorder{}, "attr tier=proofs, "
		if value == Proofs {
			want = ""
		}
		if whole := RunsWhole(&r); whole != (value == Proofs) || r.said != want {
			t.Errorf("%s=%q: got whole %t and %q, want %q", Variable, value, whole, r.said, want)
		}
	}
}

// TestRequireFailsWithoutTheTier: what starts a kubelet fails a test that has no mark, on each machine, also where a kubelet could run.
func TestRequireFailsWithoutTheTier(t *testing.T) {
	for value, want := range map[string]string{On: "", "": "fatal"} {
		t.Setenv(Variable, value)
		var r recorder
		if Require(&r); r.said != want {
			t.Errorf("%s=%q: got %q, want %q", Variable, value, r.said, want)
		}
	}
}
