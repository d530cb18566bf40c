// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest_test

import (
	"os"
	"testing"

	"github.com/belayproject/belay/internal/archtest"
	"github.com/belayproject/belay/internal/archtest/apilist"
)

// TestAPI compares the exported names of every public package with the listings below docs/api, and their number with its
// limit.
func TestAPI(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root, err := archtest.ModuleRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	pkgs, err := apilist.Load(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 30 {
		t.Fatalf("%d public packages are found: the list is not whole", len(pkgs))
	}
	committed, err := apilist.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	vs, err := apilist.Compare(pkgs, committed)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vs {
		t.Error(v)
	}
}
