// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

// An embedder's test tells a story, and has it cut off at every write. In a test, t takes the place of fakeT.
func ExampleExplore() {
	var t fakeT
	runs := lkgtest.Explore(t, lkgtest.Options{
		Limits: func(lkg.Ref) lkg.Limits { return lkg.Limits{Trial: time.Minute, CrashLoopThreshold: 1} },
	}, func(m *lkgtest.Machine) {
		m.Adopt(lkg.Ref{Namespace: "fleet", Name: "v1", UID: "1", Key: "kubelet"})
		m.Start()
		m.Healthy(2 * time.Minute)
	})
	fmt.Println(runs > 10, t.Failed())
	// Output: true false
}

// fakeT stands in for a *testing.T, which an example has none of.
type fakeT struct{ testing.TB }

func (fakeT) Helper()                  {}
func (fakeT) Context() context.Context { return context.Background() }
func (fakeT) Failed() bool             { return false }
func (fakeT) Logf(string, ...any)      {}
func (fakeT) Errorf(f string, a ...any) {
	fmt.Printf(f+"\n", a...)
}
