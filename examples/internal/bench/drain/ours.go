// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// noLimit stands for none, which our client does not offer.
const noLimit = 10_000

// defaults is the zero policy, and settled the same with a settle time of its own.
func defaults() drain.Policy { return drain.Policy{} }

func settled(d time.Duration) drain.Policy { return drain.Policy{Settle: &d} }

// A plan is how our drain goes about its nodes.
type plan struct {
	policy   drain.Policy
	parallel int                    // nodes at once; zero means all
	rate     drain.SchedulerOptions // zero means the defaults
}

// ours is our drain with the Scheduler's default limits, all nodes at the same time.
func ours(policy drain.Policy) side { return oursWith(plan{policy: policy}) }

// oursWith is our drain. Its cache is full before the drain begins, as in a controller that runs.
func oursWith(how plan) side {
	return side{name: "ours", prepare: func(ctx context.Context, config *rest.Config) (drainFunc, func(), error) {
		drainer, end, err := newDrainer(ctx, config, how.rate)
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context, nodes []string) (failed int, why error) {
			return drainAll(ctx, drainer, how, nodes)
		}, end, nil
	}}
}

func newDrainer(
	ctx context.Context, config *rest.Config, rate drain.SchedulerOptions,
) (_ *drain.Drainer, end func(), err error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	options := kube.CacheOptions{DaemonSets: true}
	factory := kube.NewFactory(clientset, options)
	cache, err := kube.NewCache(factory, options)
	if err != nil {
		return nil, nil, err
	}
	limit := kube.ClientOptions{QPS: noLimit, Burst: noLimit}
	if config.QPS > 0 {
		limit = kube.ClientOptions{QPS: config.QPS, Burst: config.Burst}
	}
	client, err := kube.NewClientForConfig(config, nil, limit)
	if err != nil {
		return nil, nil, err
	}
	scheduler, err := drain.NewScheduler(rate)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	end = func() {
		cancel()
		factory.Shutdown()
	}
	factory.StartWithContext(ctx)
	if err := cache.WaitForSync(ctx); err != nil {
		end()
		return nil, nil, err
	}
	drainer, err := drain.New(drain.Options{Cache: cache.View(), Client: client, Scheduler: scheduler})
	if err != nil {
		end()
		return nil, nil, err
	}
	return drainer, end, nil
}

func drainAll(ctx context.Context, drainer *drain.Drainer, how plan, nodes []string) (failed int, why error) {
	status, err := drainer.Run(ctx, drain.Set{
		Request:  drain.Request{Holder: "bench", Maintenance: "bench", Mode: drain.Drain, Policy: how.policy},
		Groups:   [][]string{nodes},
		MaxNodes: intstr.FromInt(cmp.Or(how.parallel, len(nodes))),
		// A node that fails must not hide what becomes of the others.
		SkipFailed: true,
	}, nil)
	if len(status.Nodes) != len(nodes) {
		return len(nodes), err
	}
	for _, n := range status.Nodes {
		if n.Phase != drain.Drained || n.Outcome != drain.OutcomeDrained {
			failed, why = failed+1, errors.Join(err, fmt.Errorf("node %q is %s, %s, %s: %s %+v", n.Node, n.Phase, n.Outcome, n.Reason, n.Message, n.Counts))
		}
	}
	return failed, why
}
