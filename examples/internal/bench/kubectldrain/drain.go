// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectldrain

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubectl "k8s.io/kubectl/pkg/drain"
)

// Retry is the delay between attempts that the kubectl command sets.
const Retry = 5 * time.Second

// Drain cordons a node and drains it, with that delay between attempts.
func Drain(ctx context.Context, client kubernetes.Interface, node string, retry time.Duration) error {
	h := helper(ctx, client, retry)
	if err := schedulable(ctx, h, node, false); err != nil {
		return err
	}
	return kubectl.RunNodeDrain(h, node)
}

// DrainNodes cordons all nodes, and drains them one after the other, as the command does with several. It returns an
// error for each node.
func DrainNodes(ctx context.Context, client kubernetes.Interface, nodes []string, retry time.Duration) []error {
	h := helper(ctx, client, retry)
	errs := make([]error, len(nodes))
	for i, node := range nodes {
		errs[i] = schedulable(ctx, h, node, false)
	}
	for i, node := range nodes {
		if errs[i] == nil {
			errs[i] = kubectl.RunNodeDrain(h, node)
		}
	}
	return errs
}

// Uncordon makes a node schedulable again.
func Uncordon(ctx context.Context, client kubernetes.Interface, node string) error {
	return schedulable(ctx, helper(ctx, client, Retry), node, true)
}

func helper(ctx context.Context, client kubernetes.Interface, retry time.Duration) *kubectl.Helper {
	return &kubectl.Helper{
		Ctx: ctx, Client: client, Force: true, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		ChunkSize: 500, EvictErrorRetryDelay: retry, Out: io.Discard, ErrOut: io.Discard,
	}
}

func schedulable(ctx context.Context, h *kubectl.Helper, name string, want bool) error {
	node, err := h.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading node %q: %w", name, err)
	}
	if err := kubectl.RunCordonOrUncordon(h, node, !want); err != nil {
		return fmt.Errorf("making node %q schedulable or not: %w", name, err)
	}
	return nil
}
