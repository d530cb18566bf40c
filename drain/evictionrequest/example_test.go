// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/evictionrequest"
)

// A program runs the Controller and the Responder beside its drains, over the same cache of pods.
func Example() {
	run := func(ctx context.Context, config *rest.Config, pods drain.Cache, evict drain.Client) error {
		served, err := evictionrequest.IsServed(ctx, discovery.NewDiscoveryClientForConfigOrDie(config))
		if err != nil || !served {
			return err
		}
		o := evictionrequest.Options{Client: dynamic.NewForConfigOrDie(config), Pods: pods, Evict: evict}
		controller, err1 := evictionrequest.NewController(o)
		responder, err2 := evictionrequest.NewResponder(o)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		done := make(chan error, 1)
		go func() { done <- responder.Run(ctx) }()
		return errors.Join(controller.Run(ctx), <-done)
	}
	_ = run

	_, err := evictionrequest.NewController(evictionrequest.Options{})
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", "\n"))
	// Output:
	// drain/evictionrequest.NewController: Options.Client is required (see k8s.io/client-go/dynamic.NewForConfig)
	// Options.Pods is required (see drain/kube.NewCache)
}
