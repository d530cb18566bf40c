// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
)

// workTime bounds the wait for the pods of the work.
const workTime = 5 * time.Minute

// addWork makes the work, and waits until it runs.
func (f *Fleet) addWork(ctx context.Context) error {
	labels, replicas := map[string]string{"app": "web"}, f.PodsPerNode*f.Nodes
	apps, budgets := f.Core.AppsV1().Deployments(metav1.NamespaceDefault), f.Core.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault)
	_, err1 := apps.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: labels}, //nolint:gosec // it is small
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "web", Image: "example.com/web"}}, TerminationGracePeriodSeconds: new(max(1, int64(f.PodsEnd.Seconds()))),
			}},
		},
	}, metav1.CreateOptions{})
	_, err2 := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, MaxUnavailable: new(intstr.FromString("20%")),
		},
	}, metav1.CreateOptions{})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	ready := int32(0)
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, workTime, true, func(ctx context.Context) (bool, error) {
		d, err := apps.Get(ctx, "web", metav1.GetOptions{})
		if err == nil {
			ready = d.Status.ReadyReplicas
		}
		return int(ready) == replicas, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods are ready: %w", ready, replicas, err)
	}
	return nil
}
