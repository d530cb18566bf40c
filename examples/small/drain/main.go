// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/belayproject/belay/drain/kube"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: drain NODE")
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run empties the node. When ctx ends before that, the node is given back as it was found.
func run(ctx context.Context, node string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	status, err := kube.DrainNode(ctx, config, node, kube.DrainOptions{Holder: "small-drain"})
	for _, pod := range status.Evicted {
		fmt.Println(pod, "evicted")
	}
	return err
}
