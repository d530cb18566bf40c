// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/belayproject/belay/identity"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := lead(ctx, "default", func(ctx context.Context) error {
		fmt.Println("leading")
		<-ctx.Done() // work here; return when ctx ends
		fmt.Println("not leading")
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// lead calls work while this process leads. Another replica may lead as soon as work has returned.
func lead(ctx context.Context, namespace string, work func(context.Context) error) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")) // without the variable, the pod's own
	if err != nil {
		return err
	}
	return identity.Lead(ctx, config, identity.LeadOptions{
		Namespace: namespace, Name: "small-leader", PodUID: os.Getenv("POD_UID"),
	}, func(ctx context.Context, _ identity.Epoch) error { return work(ctx) })
}
