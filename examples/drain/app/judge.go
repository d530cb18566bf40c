// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
)

// unschedulablePatch is the write of a cordon without a mark.
const unschedulablePatch = `{"spec":{"unschedulable":true}}`

// judgePlan has the API server judge each write that the plan would do now, without storing it: the cordon of each
// node, and the removal of each pod. What the server refuses becomes blocked in the plan, with the server's words.
func (c *cluster) judgePlan(ctx context.Context, result *drain.Result) error {
	dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	for i := range result.Nodes {
		node := &result.Nodes[i]
		nodes := c.clientset.CoreV1().Nodes()
		if _, err := nodes.Patch(ctx, node.Node, types.StrategicMergePatchType, []byte(unschedulablePatch), dry); err != nil {
			return fmt.Errorf("the API server would not take the cordon of node %q: %w", node.Node, err)
		}
		for j := range node.Pods {
			pod := &node.Pods[j]
			if pod.Action != drain.Evict {
				continue
			}
			answer := drain.Classify(c.dryRemove(ctx, pod.PodRef))
			if answer.Code == 0 { // there was no answer
				return fmt.Errorf("asking the API server whether pod %s may leave: %s", pod.PodRef, answer.Message)
			}
			if answer.Code < 300 || answer.Verdict == "Gone" || answer.Verdict == "Replaced" {
				continue
			}
			pod.Action, pod.Reason = drain.Block, drain.Reason(answer.Verdict)
			pod.Message = "the API server refuses: " + answer.Message
			node.Counts.Evictable--
			node.Counts.Blocked++
		}
	}
	return nil
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
