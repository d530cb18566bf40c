// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
)

// cloud is a provider that keeps nothing for ever.
type cloud struct{ machinetest.Memory }

func (c *cloud) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	r.Mode = provider.Destroy
	return c.Memory.Delete(ctx, r)
}

// A test of a provider calls Run with such a harness. A program calls Check.
func ExampleCheck() {
	c := &cloud{}
	backend := c.Harness() // of a real provider, functions that look at its cloud
	report, err := machinetest.Check(context.Background(), machinetest.Harness{
		Name:          "cloud",
		New:           func(context.Context) (provider.Provider, error) { return c, nil },
		Config:        []byte(`{"zone": "a"}`),
		Inventory:     backend.Inventory,
		WriteSentinel: backend.WriteSentinel,
		ReadSentinel:  backend.ReadSentinel,
		Many:          100,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range report.Of(machinetest.Failed) {
		if strings.HasPrefix(r.Name, "Retain") {
			fmt.Printf("%s: %s\n", r.Name, r.Text)
		}
	}
	for _, r := range report.Of(machinetest.Skipped)[:2] {
		fmt.Println(r)
	}
	// Output:
	// RetainKeepsDisks: Retain keeps disks and their data, and says which
	// RetainedKeepsUntil: an instance that is retained says until when, as it was asked for
	// RetainIsTheDefault: Delete without a mode, or with one that is none, keeps the disks
	// RetainedIsNotRevived: Create with the token of a retained instance starts nothing
	// rule OtherDigestIsConflict: skipped: the harness has no OtherConfig
	// rule OtherZoneIsConflict: skipped: the harness has no Zones
}

// A Memory stands for a provider in the test of whoever uses one.
func ExampleMemory() {
	ctx := context.Background()
	m := &machinetest.Memory{Polls: 1}
	owner := provider.Owner{Cluster: "c1", Name: "worker-1", UID: "0d2f", Incarnation: 1}
	want := provider.Desired{Config: []byte(`{"zone": "a"}`)}
	r := provider.CreateRequest{Token: provider.Token(owner.Cluster, owner.UID, 1), Owner: owner, Digest: want.Digest(), Desired: want}

	end := m.Inject(machinetest.Stockout)
	_, err := m.Create(ctx, r)
	fmt.Println(provider.ClassOf(err))
	end()

	i, _ := m.Create(ctx, r)
	fmt.Println(i.State)
	i, _ = m.Get(ctx, i.Ref())
	fmt.Println(i.State, m.Calls())
	// Output:
	// Stockout
	// Pending
	// Running map[Create:2 Get:1]
}
