// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"fmt"

	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/configsync/history"
)

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
