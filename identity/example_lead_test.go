// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/identity"
)

// Replicas of a controller: one of them works, the others wait for it. Here main is the body of an Example.
func ExampleLead() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := rest.InClusterConfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	err = identity.Lead(ctx, config, identity.LeadOptions{
		Namespace: "acme", Name: "acme-controller", PodUID: os.Getenv("POD_UID"),
	}, func(ctx context.Context, e identity.Epoch) error {
		fmt.Println("leads with the fencing token", e.Number)
		<-ctx.Done() // the work of the controller
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
}
