// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/fit"
	"github.com/belayproject/belay/internal/option"
)

// reasonNowhereToGo is the [drain.Reason] of a pod whose replacement no Node takes.
const reasonNowhereToGo drain.Reason = "NowhereToGo"

// EstimateFit says which of the pods that a plan has leave would find no Node for their replacement, by an estimate of
// [fit.PlaceReplacements] for all of them together. A finding has the Reason NowhereToGo, and blocks nothing: a cluster
// autoscaler may add Nodes. Pods without a controller have no replacement, and neither have those that are left to
// finish.
//
// The Nodes and pods are those of view, which must show the whole cluster and keep what a scheduler looks at: that of a
// [Cache] with [CacheOptions].Placement over [NewFactory], or over informers without a transform. Where a pod has a
// claim, the client lists claims, volumes and StorageClasses once, and namespaces where an affinity term selects them;
// it lists nothing else. What it may not list, or can't, is not held against a pod. The error says that view drops what
// is needed, or is that of ctx.
func EstimateFit(
	ctx context.Context, client kubernetes.Interface, view drain.Cache, plan drain.Result,
) ([]drain.Finding, error) {
	check := option.For("drain/kube.EstimateFit", nil)
	check.Require("client", client, "see k8s.io/client-go/kubernetes.NewForConfig")
	check.Require("view", view, "see Cache.View")
	if err := check.Err(); err != nil {
		return nil, err
	}
	c := fit.Cluster{Nodes: view.Nodes()}
	tellsRoom := func(n *corev1.Node) bool { return len(n.Status.Allocatable) > 0 }
	if len(c.Nodes) > 0 && !slices.ContainsFunc(c.Nodes, tellsRoom) {
		return nil, fmt.Errorf("drain/kube.EstimateFit: no Node of the view has status.allocatable: set "+
			"CacheOptions.Placement, or keep what a scheduler looks at in the transform of the informers: %w", drain.ErrOption)
	}
	leaving, nodes := addPods(&c, view, plan)
	if len(leaving) == 0 {
		return nil, nil
	}
	listVolumes(ctx, client, &c, leaving)
	listNamespaces(ctx, client, &c, slices.Concat(leaving, c.Pods))
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("estimating where replacements fit: %w", err)
	}
	var findings []drain.Finding
	for i, v := range fit.PlaceReplacements(c, leaving) {
		if !v.Fits {
			pod := leaving[i]
			findings = append(findings, drain.Finding{
				Node: nodes[i], PodRef: drain.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
				Reason: reasonNowhereToGo, Message: "no node can take its replacement: " + v.Why,
			})
		}
	}
	return findings, nil
}

// addPods adds to a cluster the Nodes that are drained and the pods that stay. It returns the pods of which a
// replacement is made, and the names of their Nodes.
func addPods(c *fit.Cluster, view drain.Cache, plan drain.Result) (leaving []*corev1.Pod, nodes []string) {
	gone := map[types.UID]bool{}
	for i := range plan.Nodes {
		n := &plan.Nodes[i]
		c.Draining = append(c.Draining, n.Node)
		for j := range n.Pods {
			p := &n.Pods[j]
			if p.Action == drain.Skip {
				continue
			}
			gone[p.UID] = true
			if pod := view.Pod(p.Namespace, p.Name); pod != nil && pod.UID == p.UID && isReplaced(p, pod) {
				leaving, nodes = append(leaving, pod), append(nodes, n.Node)
			}
		}
	}
	if len(leaving) == 0 {
		return nil, nil
	}
	for _, node := range c.Nodes {
		for _, pod := range view.Pods(node.Name) {
			if !gone[pod.UID] {
				c.Pods = append(c.Pods, pod)
			}
		}
	}
	return leaving, nodes
}

// isReplaced reports whether a controller makes another pod when this one leaves, and has not done so yet.
func isReplaced(p *drain.PodPlan, pod *corev1.Pod) bool {
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	owner := metav1.GetControllerOfNoCopy(pod)
	return !finished && pod.DeletionTimestamp == nil && owner != nil && owner.Kind != "DaemonSet" &&
		p.Reason != "WaitingForCompletion"
}

// fromCache lets the API server answer a list from its cache.
func fromCache() metav1.ListOptions { return metav1.ListOptions{ResourceVersion: "0"} }

// listVolumes lists what the pods' volumes need, where they have any that a Node may not reach.
func listVolumes(ctx context.Context, client kubernetes.Interface, c *fit.Cluster, pods []*corev1.Pod) {
	if !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil || v.Ephemeral != nil
		})
	}) {
		return
	}
	if list, err := client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, fromCache()); err == nil {
		c.Claims = map[types.NamespacedName]*corev1.PersistentVolumeClaim{}
		for i := range list.Items {
			claim := &list.Items[i]
			c.Claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
		}
	}
	if list, err := client.CoreV1().PersistentVolumes().List(ctx, fromCache()); err == nil {
		c.Volumes = map[string]*corev1.PersistentVolume{}
		for i := range list.Items {
			c.Volumes[list.Items[i].Name] = &list.Items[i]
		}
	}
	if list, err := client.StorageV1().StorageClasses().List(ctx, fromCache()); err == nil {
		c.Classes = map[string]*storagev1.StorageClass{}
		for i := range list.Items {
			c.Classes[list.Items[i].Name] = &list.Items[i]
		}
	}
}

// listNamespaces lists the labels of namespaces where a required affinity term of a pod selects namespaces by them.
func listNamespaces(ctx context.Context, client kubernetes.Interface, c *fit.Cluster, pods []*corev1.Pod) {
	if !slices.ContainsFunc(pods, selectsNamespaces) {
		return
	}
	if list, err := client.CoreV1().Namespaces().List(ctx, fromCache()); err == nil {
		c.NamespaceLabels = map[string]map[string]string{}
		for i := range list.Items {
			c.NamespaceLabels[list.Items[i].Name] = list.Items[i].Labels
		}
	}
}

func selectsNamespaces(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	if a == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	if a.PodAffinity != nil {
		terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	if a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil })
}

// transformOf is the transform of a factory's informers.
func transformOf(o CacheOptions) cache.TransformFunc {
	if o.Placement {
		return func(obj any) (any, error) { return keepPlacement(obj, o.Annotations) }
	}
	return transformKeeping(o.Annotations)
}

// keepPlacement is [Transform] without the loss of these annotations, and of what a scheduler looks at.
func keepPlacement(obj any, annotations []string) (any, error) {
	slim, err := slimObject(obj, annotations)
	switch o := obj.(type) {
	case *corev1.Pod:
		pod := slim.(*corev1.Pod)
		pod.Spec.NodeSelector, pod.Spec.TopologySpreadConstraints = o.Spec.NodeSelector, o.Spec.TopologySpreadConstraints
		pod.Spec.Overhead, pod.Spec.Resources = o.Spec.Overhead, o.Spec.Resources
		pod.Spec.ResourceClaims = o.Spec.ResourceClaims
		pod.Spec.Affinity = o.Spec.Affinity
		pod.Spec.Containers = keepRequests(pod.Spec.Containers, o.Spec.Containers)
		pod.Spec.InitContainers = keepRequests(pod.Spec.InitContainers, o.Spec.InitContainers)
		for i := range o.Spec.Volumes {
			if o.Spec.Volumes[i].Ephemeral != nil {
				pod.Spec.Volumes[i].Ephemeral = o.Spec.Volumes[i].Ephemeral
			}
		}
	case *corev1.Node:
		slim.(*corev1.Node).Status.Allocatable = o.Status.Allocatable
	}
	return slim, err
}

// keepRequests adds to slim containers what they ask of a Node.
func keepRequests(slim, full []corev1.Container) []corev1.Container {
	mounts := map[string][]corev1.VolumeMount{}
	for i := range slim {
		mounts[slim[i].Name] = slim[i].VolumeMounts
	}
	kept := make([]corev1.Container, 0, len(full))
	for i := range full {
		c := &full[i]
		kept = append(kept, corev1.Container{
			Name: c.Name, VolumeMounts: mounts[c.Name], Ports: c.Ports, RestartPolicy: c.RestartPolicy,
			Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests},
		})
	}
	return kept
}
