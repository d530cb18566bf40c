// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/drain/evictionrequest"
	drainkube "github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/backoff"
)

// evictionRequests ends the name of the Lease of the evictionrequest-controller.
const evictionRequests = "eviction-requests"

// serveEvictionRequests runs the evictionrequest-controller and the default responder while this process leads. It says
// once that the API server does not serve their API, and does nothing then until the process is started again.
func serveEvictionRequests(ctx context.Context, p *Plane) error {
	logger := klog.FromContext(ctx)
	pause := backoff.Backoff{First: time.Second, Most: time.Minute}
	for {
		served, err := evictionrequest.IsServed(ctx, p.core.Discovery())
		if err == nil && served {
			return p.lead(ctx, evictionRequests, func(ctx context.Context) error { return runEvictionRequests(ctx, p) })
		}
		if err == nil {
			logger.Info("The API server does not serve EvictionRequests: --eviction-requests has no effect",
				"featureGate", "EvictionRequestAPI", "runtimeConfig", "lifecycle.k8s.io/v1alpha1=true")
			return nil
		}
		logger.Error(err, "Finding out whether the API server serves EvictionRequests")
		if !pause.Wait(ctx) {
			return nil
		}
	}
}

// runEvictionRequests is one term of it.
func runEvictionRequests(ctx context.Context, p *Plane) error {
	client, err := drainkube.NewClientForConfig(p.config, nil, drainkube.ClientOptions{})
	if err != nil {
		return err
	}
	o := evictionrequest.Options{Client: p.client, Pods: p.pods.View(), Evict: client}
	controller, err1 := evictionrequest.NewController(o)
	responder, err2 := evictionrequest.NewResponder(o)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return controller.Run(ctx) })
	g.Go(func() error { return responder.Run(ctx) })
	return g.Wait()
}
