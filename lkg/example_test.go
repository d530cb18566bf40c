// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

// A node adopts a config, promotes it, is given one that does not validate, and goes back by itself.
func Example() {
	ctx := context.Background()
	check := func(r lkg.Ref) lkg.Check {
		if r.UID == "v2" {
			return lkg.Check{Outcome: lkg.CheckInvalid, Err: errors.New("maxPods: must be positive")}
		}
		return lkg.Check{Outcome: lkg.CheckOK}
	}
	limits := func(lkg.Ref) lkg.Limits { return lkg.Limits{Trial: time.Minute} }

	tracker, err := lkg.NewTracker(ctx, lkgtest.NewStore(), lkg.Options{Version: "v1.0.0", BootID: "boot-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := func() {
		if err := tracker.Start(ctx, lkg.Exit{}); err != nil {
			fmt.Println("not on record:", err)
		}
		v, err := tracker.Decide(ctx, limits, check)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Printf("ConfigOK %s: %s, because %s\n", v.Condition.Status, v.Condition.Message, v.Condition.Reason)
	}
	adopt := func(uid string) {
		ref := lkg.Ref{Namespace: "fleet", Name: uid, UID: uid, Key: "kubelet"}
		if err := errors.Join(tracker.Assign(ctx, ref), tracker.PlanRestart(ctx, lkg.CauseAdoption)); err != nil {
			fmt.Println(err)
		}
	}

	start()
	adopt("v1")
	start()
	for range 2 {
		p, err := tracker.Healthy(ctx, lkg.Health{Elapsed: 40 * time.Second})
		if err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%s: %s\n", p.Result, p.Why)
	}
	adopt("v2")
	start()
	// Output:
	// ConfigOK True: using current (default), because current is set to the local default, and no init config was provided
	// ConfigOK True: using current (UID: v1), because all checks passed
	// Wait: healthy for 40s, needed: more than 1m0s
	// Promoted: healthy for 1m20s
	// ConfigOK False: using last known good: (UID: v1), because failed to validate current (UID: v2)
}
