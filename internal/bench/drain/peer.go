// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	kubectl "k8s.io/kubectl/pkg/drain"
)

// kubectlRetry is the delay between attempts that the kubectl command sets.
const kubectlRetry = 5 * time.Second

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
		wg.Go(func() { errs[i] = kubectlOne(ctx, client, node, retry) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			failed, why = failed+1, err
		}
	}
	return failed, why
}

func kubectlOne(ctx context.Context, client kubernetes.Interface, name string, retry time.Duration) error {
	helper := &kubectl.Helper{
		Ctx: ctx, Client: client, Force: true, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		ChunkSize: 500, EvictErrorRetryDelay: retry, Out: io.Discard, ErrOut: io.Discard,
	}
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading node %q: %w", name, err)
	}
	if err := kubectl.RunCordonOrUncordon(helper, node, true); err != nil {
		return fmt.Errorf("cordoning node %q: %w", name, err)
	}
	return kubectl.RunNodeDrain(helper, name)
}
