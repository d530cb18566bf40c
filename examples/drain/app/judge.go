// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/internal/drain/settings"
)

// unschedulablePatch is the write of a cordon without a mark.
const unschedulablePatch = `{"spec":{"unschedulable":true}}`

// judgeCordons has the API server judge the cordon of each node, without storing it.
func (c *cluster) judgeCordons(ctx context.Context, names []string) error {
	dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	for _, name := range names {
		nodes := c.clientset.CoreV1().Nodes()
		if _, err := nodes.Patch(ctx, name, types.StrategicMergePatchType, []byte(unschedulablePatch), dry); err != nil {
			return fmt.Errorf("the API server would not take the cordon of node %q: %w", name, err)
		}
	}
	return nil
}

// makePlan plans the drain. Unless it is a dry run of the client alone, the API server judges each eviction, and with
// kubectl's dry run of the server also each cordon.
func (c *cluster) makePlan(
	ctx context.Context, p drain.Policy, dry settings.DryRun, names []string,
) (drain.Result, error) {
	if dry == settings.DryRunClient {
		return c.drainer.Plan(ctx, p, names...)
	}
	if dry == settings.DryRunServer {
		if err := c.judgeCordons(ctx, names); err != nil {
			return drain.Result{}, err
		}
	}
	return c.drainer.ProvePlan(ctx, p, names...)
}

// dryRemove asks the API server whether it would take the request that makes a pod leave.
func (c *cluster) dryRemove(ctx context.Context, pod drain.PodRef) error {
	if !c.deletes {
		return c.dryClient.DryRunEvict(ctx, pod)
	}
	options := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll},
		Preconditions: &metav1.Preconditions{UID: &pod.UID}}
	return c.clientset.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
}
