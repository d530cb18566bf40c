// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package badinput_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/belayproject/belay/internal/archtest"
	"github.com/belayproject/belay/internal/archtest/apilist"
	"github.com/belayproject/belay/internal/badinput"
	"github.com/belayproject/belay/internal/badinput/gen"
)

// librarySuite is the library under bad input.
func librarySuite() *badinput.Suite {
	return &badinput.Suite{
		Module: archtest.Module, Table: libraryTable(), Samples: librarySamples(), Exceptions: allowedResults(),
	}
}

// TestMain makes the calls of a package if this process is a child that is to make them.
func TestMain(m *testing.M) {
	if librarySuite().RunChild() || fakeSuite().RunChild() {
		return
	}
	os.Exit(m.Run())
}

// TestLibrary calls everything that the library exports with bad input.
func TestLibrary(t *testing.T) {
	s := librarySuite()
	for _, pkg := range s.ListPackages() {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			made, faults, err := s.RunIsolated(t.Context(), pkg, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range faults {
				t.Errorf("%s\n%s", f.Call, f.Text)
			}
			t.Logf("%d calls, %d faults", made, len(faults))
			if made == 0 {
				t.Error("no call was made")
			}
		})
	}
}

// TestTableIsUpToDate fails when a function or type is exported that the table does not have.
func TestTableIsUpToDate(t *testing.T) {
	root, err := archtest.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := apilist.Load(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	want, err := gen.Write(packages)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, gen.File))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error(gen.File + " is not what the packages export now: run make generate")
	}
}

// TestExceptions fails for an exception without a call.
func TestExceptions(t *testing.T) {
	calls := map[string]bool{}
	s := librarySuite()
	for _, pkg := range s.ListPackages() {
		for _, name := range s.CallNames(pkg) {
			if calls[name] {
				t.Errorf("two calls are named %q", name)
			}
			calls[name] = true
		}
	}
	for name, reason := range allowedResults() {
		if !calls[name] || reason == "" {
			t.Error(fmt.Sprintf("the exception %q has no call or no reason: ", name), reason)
		}
	}
}
