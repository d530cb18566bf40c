// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

// A process does its work while it holds the Lease of its name, with an epoch that grows each time. The server here is in memory; the
// LeaseInterface of client-go takes its place.
func ExampleMember_Run() {
	server := identitytest.NewServer()
	m, err := identity.New(server.Client("kube-system", "agent", nil), identity.Spec{
		Namespace: "kube-system", Name: identity.NodeName("agent", "node-1"), Component: "agent", Host: "node-1",
		Fingerprint: identity.Fingerprint{BootID: "0f0cba69"},
		Timing:      identity.NodeAgent(),
	}, identity.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = m.Run(ctx, func(_ context.Context, e identity.Epoch) error {
		for _, lease := range server.Leases() {
			fmt.Println(lease.Name, lease.Labels[identity.HostLabel], "is held:", *lease.Spec.HolderIdentity == e.Holder)
		}
		return nil
	})
	fmt.Println("error:", err, "Leases left:", len(server.Leases()))
	// Output:
	// agent-node-1 node-1 is held: true
	// error: <nil> Leases left: 0
}

// The name is the one that kube-apiservers of KEP-1965 have.
func ExampleName() {
	fmt.Println(identity.Name("apiserver", "kube-apiserver", "vm"))
	// Output: apiserver-wlv32tlttr4jl3gtroqexyxapa
}
