// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/examples/internal/bench/kubectldrain"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/rolloutstage"
)

// peerAgent is the user agent of the peer.
const peerAgent = "kubectl-drain"

// peerCourse updates all nodes with a loop around kubectl's library, as many at a time as our cap lets. It neither asks the nodes anything nor verifies
// them, so that it makes fewer calls than a loop that does.
func (f *fleet) peerCourse(ctx context.Context) (course, error) {
	config := f.Env.Config()
	config.UserAgent = peerAgent
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return course{}, err
	}
	from := time.Now()
	var failed atomic.Int64
	err = f.inTurn(func(node string) error { return update(ctx, client, node, &failed) })
	took := time.Since(from)
	if err != nil {
		return course{}, err
	}
	fmt.Fprintf(os.Stderr, "  the peer is done after %v\n", took.Round(100*time.Millisecond))
	c, err := f.course(ctx, from, time.Now())
	c.took, c.failed = took, int(failed.Load())
	return c, err
}

// inTurn does something to each node in turn, to as many at a time as the cap lets.
func (f *fleet) inTurn(do func(node string) error) error {
	errs := make([]error, f.Nodes)
	places := make(chan struct{}, f.Cap)
	var wg sync.WaitGroup
	for i := range f.Nodes {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			errs[i] = do(rolloutstage.NodeName(i))
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// update is one round of the loop. A drain that fails, as kubectl's does where evictions meet at a budget, is begun again.
func update(ctx context.Context, client kubernetes.Interface, node string, failed *atomic.Int64) error {
	mark := func(state string) error {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"bench.belay.dev/update":%q}}}`, state)
		_, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	if err := mark("updating"); err != nil {
		return err
	}
	for {
		err := kubectldrain.Drain(ctx, client, node, kubectldrain.Retry)
		if err == nil {
			break
		}
		if failed.Add(1); !backoff.Sleep(ctx, kubectldrain.Retry) {
			return err
		}
	}
	if err := mark("updated"); err != nil {
		return err
	}
	return kubectldrain.Uncordon(ctx, client, node)
}
