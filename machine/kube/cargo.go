// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

var _ controller.Cargo = Cargo{}

// Cargo is what is on machines, as the API server of the workload cluster says when it is asked: nothing is kept, as an end is checked twice in a
// machine's life.
type Cargo struct{ Client kubernetes.Interface }

// On implements [controller.Cargo].
func (c Cargo) On(ctx context.Context, machines []machine.Machine) ([]machine.LocalVolume, []machine.Workload, error) {
	remedy := "see kubernetes.NewForConfig"
	if err := option.CheckRequired("machine/kube.Cargo.On", "Cargo.Client", c.Client, remedy); err != nil {
		return nil, nil, err
	}
	hosts := map[machine.Key]*corev1.Node{}
	var here []corev1.Pod
	for _, m := range machines {
		n, err := c.node(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		if n == nil {
			continue
		}
		hosts[m.Key] = n
		pods, err := c.pods(ctx, "", metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name})
		if err != nil {
			return nil, nil, err
		}
		here = append(here, pods...)
	}
	if len(hosts) == 0 {
		return nil, nil, nil
	}
	pods, err := c.beside(ctx, here)
	if err != nil {
		return nil, nil, err
	}
	volumes, err := bounded(ctx, func(ctx context.Context) (*corev1.PersistentVolumeList, error) {
		return c.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list PersistentVolumes: %w", err)
	}
	return LocalVolumes(hosts, volumes.Items, here), Workloads(hosts, pods), nil
}

// node is that of a machine; nil if it is gone.
func (c Cargo) node(ctx context.Context, m machine.Machine) (*corev1.Node, error) {
	if m.Node == nil {
		return nil, nil
	}
	n, err := bounded(ctx, func(ctx context.Context) (*corev1.Node, error) {
		return c.Client.CoreV1().Nodes().Get(ctx, m.Node.Name, metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err), err == nil && string(n.UID) != m.Node.UID:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Node %q: %w", m.Node.Name, err)
	}
	return n, nil
}

// beside are the pods of all namespaces that have a pod here.
func (c Cargo) beside(ctx context.Context, here []corev1.Pod) (all []corev1.Pod, err error) {
	var namespaces []string
	for i := range here {
		if ns := here[i].Namespace; replicated(&here[i]) && !slices.Contains(namespaces, ns) {
			namespaces = append(namespaces, ns)
		}
	}
	for _, ns := range namespaces {
		pods, err := c.pods(ctx, ns, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, err
		}
		all = append(all, pods...)
	}
	return all, nil
}

func (c Cargo) pods(ctx context.Context, namespace string, o metav1.ListOptions) ([]corev1.Pod, error) {
	pods, err := bounded(ctx, func(ctx context.Context) (*corev1.PodList, error) {
		return c.Client.CoreV1().Pods(namespace).List(ctx, o)
	})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return pods.Items, nil
}

// bounded makes one call with its deadline.
func bounded[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return call(ctx)
}
