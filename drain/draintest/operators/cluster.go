// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/internal/backoff"
)

// zone is the label of the failure domain of pods.
const zone = "topology-location-host"

// A cluster is the part of an API server that one run uses: a namespace and three nodes. The first is drained.
type cluster struct {
	client kubernetes.Interface
	ns     string
	node   string
	nodes  []string
	ends   map[types.UID]time.Time // of pods that end
	closes []func(context.Context) error
}

func newCluster(ctx context.Context, config *rest.Config) (*cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ns, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "operators-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating a namespace: %w", err)
	}
	c := &cluster{client: client, ns: ns.Name, ends: map[types.UID]time.Time{}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = client.CoreV1().ServiceAccounts(c.ns).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		err = fmt.Errorf("creating a service account: %w", err)
		return nil, errors.Join(err, c.deleteObjects(context.WithoutCancel(ctx)))
	}
	for _, suffix := range []string{"a", "b", "c"} {
		if err := c.addNode(ctx, c.ns+"-"+suffix); err != nil {
			return nil, errors.Join(err, c.deleteObjects(context.WithoutCancel(ctx)))
		}
	}
	c.node = c.nodes[0]
	return c, nil
}

func (c *cluster) addNode(ctx context.Context, name string) error {
	nodes := c.client.CoreV1().Nodes()
	node, err := nodes.Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating node %q: %w", name, err)
	}
	c.nodes = append(c.nodes, name)
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	if _, err := nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing the status of node %q: %w", name, err)
	}
	return nil
}

// deleteObjects deletes what the run created.
func (c *cluster) deleteObjects(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var errs []error
	for _, end := range slices.Backward(c.closes) {
		errs = append(errs, end(ctx))
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	errs = append(errs,
		c.client.CoreV1().Pods(c.ns).DeleteCollection(ctx, now, metav1.ListOptions{}),
		c.client.PolicyV1().PodDisruptionBudgets(c.ns).DeleteCollection(ctx, now, metav1.ListOptions{}),
		c.client.AppsV1().ReplicaSets(c.ns).DeleteCollection(ctx, now, metav1.ListOptions{}))
	for _, name := range c.nodes {
		errs = append(errs, c.client.CoreV1().Nodes().Delete(ctx, name, now))
	}
	errs = append(errs, c.client.CoreV1().Namespaces().Delete(ctx, c.ns, now))
	return errors.Join(errs...)
}

// newOwner returns a controller that exists in name only.
func newOwner(apiVersion, kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: name, UID: uuid.NewUUID(), Controller: ptr.To(true),
	}
}

// addPod creates a pod that is bound to a node. Where node is empty, the pod stays pending.
func (c *cluster) addPod(ctx context.Context, pod *corev1.Pod) error {
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	_, err := c.client.CoreV1().Pods(c.ns).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating pod %q: %w", pod.Name, err)
	}
	return nil
}

func newPod(name, node string, owner metav1.OwnerReference, set labels.Set) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

// addBudget creates a PodDisruptionBudget with exactly one of least and most.
func (c *cluster) addBudget(ctx context.Context, name string, set labels.Set, least, most *intstr.IntOrString) error {
	_, err := c.client.PolicyV1().PodDisruptionBudgets(c.ns).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: set}, MinAvailable: least, MaxUnavailable: most,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating budget %q: %w", name, err)
	}
	return nil
}

func countOf(n int) *intstr.IntOrString { return ptr.To(intstr.FromInt(n)) }

func (c *cluster) deleteBudget(ctx context.Context, name string) error {
	err := c.client.PolicyV1().PodDisruptionBudgets(c.ns).Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *cluster) patchPod(ctx context.Context, name, patch string) error {
	_, err := c.client.CoreV1().Pods(c.ns).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// deletePod deletes a pod as its operator does.
func (c *cluster) deletePod(ctx context.Context, name string) error {
	err := c.client.CoreV1().Pods(c.ns).Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// awaitReady plays the kubelets until all pods are ready and the budgets know it.
func (c *cluster) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		v, err := c.readView(ctx)
		if err != nil {
			return err
		}
		missing := v.findUnready()
		if missing == "" {
			return nil
		}
		if err := c.playKubelets(ctx, v); err != nil {
			return err
		}
		if !backoff.Sleep(ctx, stepInterval) {
			return fmt.Errorf("after %v: %s", readyTimeout, missing)
		}
	}
}
