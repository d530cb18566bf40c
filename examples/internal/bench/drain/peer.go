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

// peerOfSet is one kubectl command with several nodes.
func peerOfSet(retry time.Duration) side {
	return side{name: "peer", prepare: func(_ context.Context, config *rest.Config) (drainFunc, func(), error) {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context, nodes []string) (failed int, why error) {
			return countErrors(kubectldrain.DrainNodes(ctx, client, nodes, retry))
		}, func() {}, nil
	}}
}

// peerOfCrowd is as many kubectl commands at once as given, each with the next node.
func peerOfCrowd(retry time.Duration, atOnce int) side {
	return side{name: "peer", prepare: func(_ context.Context, config *rest.Config) (drainFunc, func(), error) {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context, nodes []string) (failed int, why error) {
			return kubectlSome(ctx, client, nodes, retry, atOnce)
		}, func() {}, nil
	}}
}

func kubectlAll(ctx context.Context, client kubernetes.Interface, nodes []string, retry time.Duration) (failed int, why error) {
	return kubectlSome(ctx, client, nodes, retry, len(nodes))
}

func kubectlSome(
	ctx context.Context, client kubernetes.Interface, nodes []string, retry time.Duration, atOnce int,
) (failed int, why error) {
	errs := make([]error, len(nodes))
	places := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, node := range nodes {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			errs[i] = kubectldrain.Drain(ctx, client, node, retry)
		})
	}
	wg.Wait()
	return countErrors(errs)
}

func countErrors(errs []error) (failed int, why error) {
	for _, err := range errs {
		if err != nil {
			failed, why = failed+1, err
		}
	}
	return failed, why
}
