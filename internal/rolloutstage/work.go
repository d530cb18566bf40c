// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/belayproject/belay/internal/testenv"
)

// workTime bounds the wait for the pods of the work.
const workTime = 5 * time.Minute

// takesWork waits until every Node is one that a scheduler takes.
func (f *Fleet) takesWork(ctx context.Context) error {
	open := 0
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, workTime, true, func(ctx context.Context) (bool, error) {
		if n, err := testenv.OpenNodes(ctx, f.Core); err == nil {
			open = n
		}
		return open == f.Nodes, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d Nodes take work: %w", open, f.Nodes, err)
	}
	return nil
}

// addWork makes the work, and waits until it runs.
func (f *Fleet) addWork(ctx context.Context) error {
	if err := f.takesWork(ctx); err != nil {
		return err
	}
	apps, pods := max(1, f.Apps), f.PodsPerNode*f.Nodes
	for i := range apps {
		if err := f.addApp(ctx, fmt.Sprintf("web-%d", i), (pods+i)/apps); err != nil {
			return err
		}
	}
	ready := 0
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, workTime, true, func(ctx context.Context) (bool, error) {
		if all, err := f.Core.AppsV1().Deployments(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{}); err == nil {
			ready = 0
			for i := range all.Items {
				ready += int(all.Items[i].Status.ReadyReplicas)
			}
		}
		return ready == pods, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods are ready: %w", ready, pods, err)
	}
	return nil
}

// addApp makes a Deployment and its budget.
func (f *Fleet) addApp(ctx context.Context, name string, replicas int) error {
	meta, labels := metav1.ObjectMeta{Name: name}, map[string]string{"app": name}
	_, err1 := f.Core.AppsV1().Deployments(metav1.NamespaceDefault).Create(ctx, &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: labels}, //nolint:gosec // it is small
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "web", Image: "example.com/web"}}, TerminationGracePeriodSeconds: ptr.To(max(1, int64(f.PodsEnd.Seconds()))),
			}},
		},
	}, metav1.CreateOptions{})
	_, err2 := f.Core.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, MaxUnavailable: ptr.To(intstr.FromString("20%")),
		},
	}, metav1.CreateOptions{})
	return errors.Join(err1, err2)
}
