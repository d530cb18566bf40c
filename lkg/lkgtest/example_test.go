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

// Are these limits right for a fleet whose bad configs may live for five minutes a run? Figures tell, and a history
// that went wrong can be told again by its seed.
func ExampleHistories() {
	ctx := context.Background()
	for _, healthyRun := range []time.Duration{time.Minute, 10 * time.Minute} {
		h := lkgtest.Histories{
			Seed: 1, Count: 60, Life: 5 * time.Minute,
			Limits: []lkg.Limits{{Trial: 10 * time.Minute, MinHealthyRun: healthyRun, CrashLoopThreshold: 10}},
		}
		f, err := h.Play(ctx, lkgtest.Belay())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%v: good configs rejected: %v, bad configs promoted: %v\n",
			healthyRun, f.GoodRejected > 0, f.BadPromoted > 0)
	}
	// Output:
	// 1m0s: good configs rejected: false, bad configs promoted: true
	// 10m0s: good configs rejected: false, bad configs promoted: false
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
