// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodetier_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testenv/nodetier"
	"github.com/belayproject/belay/internal/testproc"
)

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) != "" {
		own()
	}
	os.Exit(m.Run())
}

// runPod starts a control plane, a tier and a kubelet, and returns once a pod runs.
func runPod(ctx context.Context, env *testenv.Env, tier *nodetier.Tier) (*testenv.Process, error) {
	node, err := tier.NewNode("real")
	if err != nil {
		return nil, err
	}
	config, err := node.Config(nil)
	if err != nil {
		return nil, err
	}
	kubelet, err := node.Kubelet(config)
	if err != nil {
		return nil, err
	}
	if err := kubelet.Start(ctx); err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(env.Config())
	if err != nil {
		return nil, err
	}
	if err := testproc.Poll(time.Minute, func() error { return nodeReady(ctx, client, node.Name) }); err != nil {
		return nil, err
	}
	pods := client.CoreV1().Pods("default")
	if _, err := pods.Create(ctx, pausePod("pause", node.Name), metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return kubelet, testproc.Poll(time.Minute, func() error { return podRunning(ctx, client, "pause") })
}

func pausePod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
			Containers: []corev1.Container{{
				Name: "pause", Image: nodetier.PauseImage, ImagePullPolicy: corev1.PullNever,
			}},
		},
	}
}

func nodeReady(ctx context.Context, client kubernetes.Interface, name string) error {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("node %q is not Ready: %+v", name, node.Status.Conditions)
}

func podRunning(ctx context.Context, client kubernetes.Interface, name string) error {
	pod, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" {
		status := pod.Status
		return fmt.Errorf("pod %q has phase %q, IP %q: %+v", name, status.Phase, status.PodIP, status.ContainerStatuses)
	}
	return nil
}
