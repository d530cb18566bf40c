// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package systemd_test

import (
	"context"
	"fmt"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/restart/systemd"
)

// A kubelet with a unit of its own is restarted when its config is in place, and its unit is one that comes back.
func Example() {
	ctx := context.Background()
	fake := &bus{result: "done", properties: map[string]any{"LoadState": "loaded", "ActiveState": "active", "Restart": "on-failure"}}
	kubelet, err := systemd.New("kubelet.service", systemd.Options{
		Dial: fake.dial, // leave it out for the machine's systemd
		Prepare: func(_ context.Context, c configsync.Change) error {
			fmt.Println("in place:", c.Why)
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(kubelet.Restart(ctx, configsync.Change{Kind: configsync.Adopt, Why: "a new config is assigned"}))
	fmt.Println(kubelet.Check(ctx))
	policy, err := kubelet.Policy(ctx)
	fmt.Println(err)
	fmt.Println(policy.After(0))
	// Output:
	// in place: a new config is assigned
	// <nil>
	// <nil>
	// <nil>
	// unit "kubelet.service": after exit status 0 systemd leaves the unit down: it is clean, and Restart=on-failure; use Restart=always, or exit with another status
}
