// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"path"
	"testing"
)

// mostIncidents bounds the mutants that are written by hand: each stands for an incident. What needs no incident is
// found by the operators of internal/mutate.
const mostIncidents = 150

// TestFewIncidents counts the mutants that are written by hand.
func TestFewIncidents(t *testing.T) {
	n := 0
	for _, f := range moduleTree(t).Files {
		if path.Base(f.Path) == "incidents_test.go" && f.Dir() != "internal/archtest" {
			n += bytes.Count(f.Text, []byte("\t\t\tFunc:"))
		}
	}
	if n == 0 || n > mostIncidents {
		t.Errorf("got %d hand-written mutants, want some, and %d at most", n, mostIncidents)
	}
}
