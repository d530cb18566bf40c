// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/examples/internal/bench/kubectldrain"
)

const kubectlRetry = kubectldrain.Retry

// peer is kubectl's library as the command uses it, all nodes at the same time, over one client.
func peer(retry time.Duration) side {
	return side{name: "peer", prepare: func(_ context.Context, config *rest.Config) (drainFunc, func(), error) {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context, nodes []string) (failed int, why error) {
			return kubectlAll(ctx, client, nodes, retry)
		}, func() {}, nil
	}}
}

func kubectlAll(ctx context.Context, client kubernetes.Interface, nodes []string, retry time.Duration) (failed int, why error) {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, node := range nodes {
		wg.Go(func() { errs[i] = kubectldrain.Drain(ctx, client, node, retry) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			failed, why = failed+1, err
		}
	}
	return failed, why
}
