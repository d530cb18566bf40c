// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
)

// BenchmarkDecide is one decision from memory, with the longest list of starts and fifty bad configs.
func BenchmarkDecide(b *testing.B) {
	full := onTrial("x", "a", "b")
	for len(full.Starts) < 36 {
		full.Starts = append(full.Starts, lkg.Start{At: time.Unix(int64(len(full.Starts)), 0), Assignment: "0", N: 1, Cause: lkg.CauseReboot})
	}
	for i := range 50 {
		full.Bad = append(full.Bad, lkg.BadEntry{Ref: lkg.Ref{UID: "uid-" + time.Duration(i).String()}, Reason: "listed"})
	}
	good := full
	good.LastKnownGood = named("x")
	listed := full
	listed.Bad = append(bad("x"), full.Bad...)
	ok := func(lkg.Ref) lkg.Check { return lkg.Check{Outcome: lkg.CheckOK, Origin: lkg.OriginInit} }
	limits := func(lkg.Ref) lkg.Limits { return lkg.Limits{CrashLoopThreshold: 10} }
	for name, s := range map[string]lkg.State{"known-good": good, "on-trial": full, "rolled-back": listed} {
		in := lkg.Input{State: s, Recorded: true, Limits: limits}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v := lkg.Decide(in, ok); v.Role == "" {
					b.Fatal("no verdict")
				}
			}
		})
	}
}
