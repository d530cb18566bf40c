// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

// A process that is a member itself watches who else is alive. With a real API server leases is client.CoordinationV1().Leases("fleet").
func ExampleView() {
	leases := identitytest.NewServer().Client("fleet", "node-1", nil)
	member, err := identity.New(leases, identity.Spec{
		Namespace: "fleet", Name: identity.NodeName("agent", "node-1"), Component: "agent", Host: "node-1",
		Fingerprint: identity.Fingerprint{BootID: "6f2d"}, Timing: identity.Timing{Renew: time.Second},
	}, identity.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	informer, err := identity.NewInformer(leases, "agent")
	if err != nil {
		fmt.Println(err)
		return
	}
	view, err := identity.NewView(identity.ViewConfig{Source: informer, Canary: member})
	if err != nil {
		fmt.Println(err)
		return
	}
	events := make(chan identity.Event, 10)
	view.Subscribe(func(e identity.Event) { events <- e })

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	run := func(run func(context.Context) error) {
		running.Go(func() {
			if err := run(ctx); err != nil {
				fmt.Println(err)
			}
		})
	}
	run(view.Run)
	run(func(ctx context.Context) error { informer.RunWithContext(ctx); return nil })
	run(func(ctx context.Context) error { return member.Run(ctx, nil) })

	e := <-events
	fmt.Println(e.Type, e.Peer.Key.Name)
	for _, p := range view.Peers(identity.Alive) {
		fmt.Println("alive on", p.Host)
	}
	cancel()
	running.Wait()

	// Output:
	// Joined agent-node-1
	// alive on node-1
}
