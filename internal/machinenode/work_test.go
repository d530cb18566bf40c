// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machinenode_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/internal/testenv/nodetier"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// work makes a Deployment of one pod, which needs the label that the machine gives its Node, and waits for the pod.
func (s *stage) work(m *v1alpha1.Machine) {
	s.t.Helper()
	labels := map[string]string{"app": "web"}
	_, err := s.core.AppsV1().Deployments(s.namespace).Create(s.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"pool": "blue"}, TerminationGracePeriodSeconds: ptr.To[int64](1),
					Containers: []corev1.Container{{Name: "web", Image: nodetier.PauseImage, ImagePullPolicy: corev1.PullNever}},
				},
			},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	s.works(m)
}

// works waits until a pod runs on the Node.
func (s *stage) works(m *v1alpha1.Machine) (pod corev1.Pod) {
	s.t.Helper()
	s.until("a pod that runs", func() error {
		ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
		defer cancel()
		all, err := s.core.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		err = errors.New("there is none")
		for _, p := range all.Items {
			if p.Spec.NodeName == m.Status.NodeRef.Name && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				pod = p
				return nil
			}
			err = fmt.Errorf("pod %q on %q is %s: %+v", p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.ContainerStatuses)
		}
		return err
	})
	return pod
}
