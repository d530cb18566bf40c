// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/examples/internal/agent/history"
	"github.com/belayproject/belay/lkg"
)

func ref(n string) lkg.Ref {
	return lkg.Ref{Namespace: "ns", Name: n, UID: n, Key: "k", Digest: "sha256:" + n}
}

// life is a node that adopts b over a, finds it bad, goes back, and is in trouble for a while.
func life() []configsync.Status {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	a := configsync.Status{Assigned: ref("a"), Active: ref("a"), LastKnownGood: ref("a"), StartedAt: at}
	adopted := a
	adopted.Assigned = ref("b")
	tried := adopted
	tried.Active, tried.StartedAt = ref("b"), at.Add(time.Minute)
	rejected := tried
	rejected.Rejected = []lkg.BadEntry{{Ref: ref("b"), Reason: "failed to validate current (UID: b)"}}
	back := rejected
	back.Active, back.StartedAt, back.Condition.Reason = ref("a"), at.Add(2*time.Minute), rejected.Rejected[0].Reason
	stuck := back
	stuck.Error = "forbidden"
	return []configsync.Status{a, adopted, tried, rejected, back, stuck, back}
}

// The journal is a Reporter among others. What it has written down can be read without it.
func Example() {
	ctx := context.Background()
	disk := &configsynctest.Disk{} // or a *checkpoint.Store
	journal, err := history.Open(ctx, disk, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, status := range life() { // Options.Reporter: configsync.Joined(journal, …)
		if err := journal.Report(ctx, status); err != nil {
			fmt.Println(err)
			return
		}
	}
	entries, _, err := history.Read(ctx, disk)
	for _, e := range entries {
		if e.Kind.Urgent() {
			fmt.Printf("%d %s %s: %s\n", e.N, e.Kind, e.Config, e.Why)
		}
	}
	fmt.Println(err)
	// Output:
	// 4 Rejected ns/b (UID: b): failed to validate current (UID: b)
	// 6 RolledBack ns/a (UID: a): failed to validate current (UID: b)
	// 7 Stuck ns/b (UID: b): forbidden
	// <nil>
}
