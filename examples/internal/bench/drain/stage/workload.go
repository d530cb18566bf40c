// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	containerName = "main"
	image         = "bench.invalid/none:1"
	grace         = int64(120) // seconds; longer than any pod here takes to end
)

const (
	roleLabel = "bench.belay.dev/role"
	worker    = "worker" // is drained
	holder    = "holder" // is not ready, and so spends the budget
	never     = 1000 * time.Hour
)

func (p *Play) workload(ctx context.Context, app int) error {
	count, t := p.Pods()/p.countApps(), p.template(app, worker, p.Ready)
	if !p.Stateful {
		return p.replicas(ctx, p.appName(app), count, t)
	}
	replicas := int32(count)
	_, err := p.stage.client.AppsV1().StatefulSets(p.name).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: p.appName(app), Labels: p.labels()},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: t.Labels}, Template: t,
			ServiceName: p.name, PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}, metav1.CreateOptions{})
	return err
}

func (p *Play) hold(ctx context.Context) error {
	return p.replicas(ctx, p.name+"-"+holder, 1, p.template(0, holder, never))
}

// Release makes the pod ready that spends the budget.
func (p *Play) Release(ctx context.Context) error {
	pods, err := p.stage.client.CoreV1().Pods(p.name).List(ctx, metav1.ListOptions{LabelSelector: roleLabel + "=" + holder})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		if err := markReady(ctx, p.stage.client, &pods.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *Play) replicas(ctx context.Context, name string, count int, t corev1.PodTemplateSpec) error {
	replicas := int32(count)
	_, err := p.stage.client.AppsV1().ReplicaSets(p.name).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: p.labels()},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: t.Labels}, Template: t},
	}, metav1.CreateOptions{})
	return err
}

func (p *Play) template(app int, role string, ready time.Duration) corev1.PodTemplateSpec {
	noToken, seconds := false, grace
	labels := p.labelsOf(app)
	labels[roleLabel] = role
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{
			readyAnnotation: ready.String(), endAnnotation: p.End.String(),
		}},
		Spec: corev1.PodSpec{
			NodeSelector: p.labels(), AutomountServiceAccountToken: &noToken, TerminationGracePeriodSeconds: &seconds,
			Containers: []corev1.Container{{Name: containerName, Image: image}},
		},
	}
}
