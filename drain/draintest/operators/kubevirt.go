// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

const kubevirtSource = "https://github.com/kubevirt/kubevirt/blob/main/docs/handling-eviction-requests.md"

// The pods of the virtual machine, before and after its migration.
const (
	vmSource = "virt-launcher-vm-aaaaa"
	vmTarget = "virt-launcher-vm-bbbbb"
	vmBudget = "kubevirt-disruption-budget-vm"
)

// kubevirt migrates one virtual machine with the eviction strategy LiveMigrate.
//
//   - A budget of minAvailable 1 selects the one virt-launcher pod; while a migration runs it is 2 of 2:
//     https://github.com/kubevirt/kubevirt/pull/2091 and https://github.com/kubevirt/kubevirt/issues/2196.
//   - The first eviction gets 429 and 'Eviction triggered evacuation of VMI "ns/name"', and starts the migration. The
//     next ones pass the webhook and are refused by the budget. Nothing else starts it; a cordon does not.
//   - The source pod gets the annotation descheduler.alpha.kubernetes.io/eviction-in-progress.
//   - The source pod completes when the machine runs in the target pod.
type kubevirt struct {
	owner      metav1.OwnerReference
	set        labels.Set
	evacuation atomic.Bool
	annotated  bool
	steps      int
}

func (k *kubevirt) createObjects(ctx context.Context, c *cluster) error {
	k.owner = newOwner("kubevirt.io/v1", "VirtualMachineInstance", "vm")
	k.set = labels.Set{"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": string(k.owner.UID)}
	pod := newPod(vmSource, c.node, k.owner, k.set)
	pod.Annotations = map[string]string{"kubevirt.io/domain": "vm"}
	if err := c.addPod(ctx, pod); err != nil {
		return err
	}
	budgetSet := labels.Set{"kubevirt.io/created-by": string(k.owner.UID)}
	if err := c.addBudget(ctx, vmBudget, budgetSet, countOf(1), nil); err != nil {
		return err
	}
	return c.serveWebhook(ctx, &webhook{
		name: "virt-launcher-eviction-interceptor.kubevirt.io", policy: admissionregistrationv1.Ignore, timeout: 10,
		answer: func(_ context.Context, pod string) (*metav1.Status, int) {
			if pod != vmSource || k.evacuation.Swap(true) {
				return nil, 0
			}
			return &metav1.Status{
				Code:    http.StatusTooManyRequests,
				Message: fmt.Sprintf("Eviction triggered evacuation of VMI %q", c.ns+"/vm"),
			}, 0
		},
	}, vmSource)
}

func (k *kubevirt) reconcile(ctx context.Context, c *cluster, v view) error {
	source, ok := v.podNamed(vmSource)
	if !k.evacuation.Load() || !ok || len(v.runningPods(func(p podView) bool { return p.Name == vmSource })) == 0 {
		return nil
	}
	if !k.annotated {
		k.annotated = true
		const patch = `{"metadata":{"annotations":{"descheduler.alpha.kubernetes.io/eviction-in-progress":"kubevirt"}}}`
		return c.patchPod(ctx, vmSource, patch)
	}
	target, ok := v.podNamed(vmTarget)
	if !ok {
		if err := k.setMinAvailable(ctx, c, 2); err != nil {
			return err
		}
		return c.addPod(ctx, newPod(vmTarget, c.nodes[1], k.owner, k.set))
	}
	if !target.isReady() {
		return nil
	}
	if k.steps++; k.steps < 20 { // the memory of the machine is copied for two seconds
		return nil
	}
	if err := c.finishPod(ctx, source); err != nil {
		return err
	}
	return k.setMinAvailable(ctx, c, 1)
}

func (k *kubevirt) setMinAvailable(ctx context.Context, c *cluster, n int) error {
	patch := fmt.Sprintf(`{"spec":{"minAvailable":%d}}`, n)
	_, err := c.client.PolicyV1().PodDisruptionBudgets(c.ns).Patch(
		ctx, vmBudget, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (k *kubevirt) checkInvariant(v view) string {
	for _, p := range v.pods {
		if p.Name == vmSource && p.DeletionTimestamp != nil && p.isReady() {
			return "the source pod was deleted before the migration was over"
		}
	}
	if v.countReady(k.set) == 0 {
		return "the virtual machine was down"
	}
	return ""
}

func (k *kubevirt) verifyEnd(v view) string {
	if target, ok := v.podNamed(vmTarget); !ok || !target.isReady() {
		return "the virtual machine does not run in its target pod"
	}
	return ""
}
