// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	drainkube "github.com/belayproject/belay/drain/kube"
)

// drainer makes a Drainer, and returns the Nodes of its cache.
func (c *child) drainer(ctx context.Context, config *rest.Config, core kubernetes.Interface) (*drain.Drainer, func() []*corev1.Node, error) {
	options := drainkube.CacheOptions{DaemonSets: true}
	factory := drainkube.NewFactory(core, options)
	cache, err := drainkube.NewCache(factory, options)
	if err != nil {
		return nil, nil, err
	}
	factory.StartWithContext(ctx)
	if err := cache.WaitForSync(ctx); err != nil {
		return nil, nil, err
	}
	client, err := drainkube.NewClient(config, drainkube.ClientOptions{QPS: 500, Burst: 500})
	if err != nil {
		return nil, nil, err
	}
	d, err := drain.New(drain.Options{Cache: cache.View(), Client: client})
	if err != nil {
		return nil, nil, err
	}
	cache.Watch(func(drain.Change) { c.poke() })
	d.Watch(func(string) { c.poke() })
	return d, cache.Nodes, nil
}
