// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drainproof_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/utils/ptr"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/testenv"
)

// A cluster is what one test has of a control plane: a namespace, nodes, workloads, and kubelets that are played.
type cluster struct {
	env       *testenv.Env
	api       kubernetes.Interface
	namespace string
	name      string // prefix of what has no namespace
}

// newCluster makes a place for a test on the shared control plane. Its kubelets play until the test ends, and for its pods alone, so
// that tests may run at the same time.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := place(t, shared.Env(t))
	playKubelets(t, c.api, c.namespace)
	return c
}

// place makes a namespace; its name is also the prefix of the nodes.
func place(t *testing.T, env *testenv.Env) *cluster {
	t.Helper()
	ns := env.Namespace(t)
	return &cluster{env: env, api: clientset(t, env.Config()), namespace: ns, name: ns}
}

// placeLabel is on the nodes of a cluster, with its name, so that no pod of another test comes there.
const placeLabel = "drainproof/place"

// roleLabel is on the nodes too: those with spareRole take replacements.
const (
	roleLabel = "drainproof/role"
	spareRole = "spare"
	workRole  = "work"
)

// node makes a Node that is ready.
func (c *cluster) node(ctx context.Context, name, role string, changes ...func(*corev1.Node)) (*corev1.Node, error) {
	name = c.name + "-" + name
	changes = append(changes, func(n *corev1.Node) { n.Labels[placeLabel], n.Labels[roleLabel] = c.name, role })
	node, err := c.env.CreateNode(ctx, name, changes...)
	if err != nil {
		return nil, err
	}
	room := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("500")}
	status := corev1.NodeStatus{Allocatable: room, Capacity: room, Conditions: []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return nil, err
	}
	if _, err := c.api.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return nil, err
	}
	// The controller manager takes the taint of a new node off when it sees that it is ready.
	return node, until(ctx, func() error {
		if node, err = c.api.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == corev1.TaintNodeNotReady {
				return fmt.Errorf("node %q still has taint %q", name, taint.Key)
			}
		}
		return nil
	})
}

func (c *cluster) mustNode(t *testing.T, name, role string, changes ...func(*corev1.Node)) *corev1.Node {
	t.Helper()
	node, err := c.node(t.Context(), name, role, changes...)
	must(t, err)
	return node
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// podOf is a pod of an app, bound to a node if one is given.
func podOf(name, app, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: ptr.To(int64(5)),
			Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func (c *cluster) pod(ctx context.Context, name, app, node string, changes ...func(*corev1.Pod)) (*corev1.Pod, error) {
	return c.api.CoreV1().Pods(c.namespace).Create(ctx, podOf(name, app, node, changes...), metav1.CreateOptions{})
}

func (c *cluster) mustPod(t *testing.T, name, app, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod, err := c.pod(t.Context(), name, app, node, changes...)
	must(t, err)
	return pod
}

// budget makes a PodDisruptionBudget that keeps a number of an app's pods.
func (c *cluster) budget(ctx context.Context, name, app string, minAvailable int) error {
	_, err := c.api.PolicyV1().PodDisruptionBudgets(c.namespace).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt(minAvailable)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}, metav1.CreateOptions{})
	return err
}

// healthy waits until the disruption controller counts that many healthy pods under a budget.
func (c *cluster) healthy(ctx context.Context, name string, n int32) error {
	return until(ctx, func() error {
		b, err := c.api.PolicyV1().PodDisruptionBudgets(c.namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && (b.Status.CurrentHealthy != n || b.Status.ObservedGeneration != b.Generation) {
			err = fmt.Errorf("budget %q counts %d healthy pods, want %d", name, b.Status.CurrentHealthy, n)
		}
		return err
	})
}

// replicas makes a ReplicaSet, whose new pods go to the spare nodes of the cluster. It takes in the app's pods that are there.
func (c *cluster) replicas(ctx context.Context, app string, n int32) error {
	pod := podOf("", app, "")
	pod.Spec.NodeSelector = map[string]string{placeLabel: c.name, roleLabel: spareRole}
	_, err := c.api.AppsV1().ReplicaSets(c.namespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec},
		},
	}, metav1.CreateOptions{})
	return err
}

// app makes pods on the given nodes, one for each name, under a ReplicaSet and a budget. The ReplicaSet comes when the controllers have
// seen the pods, or it would make others.
func (c *cluster) app(ctx context.Context, app string, minAvailable int, nodes ...string) error {
	if err := c.budget(ctx, app, app, minAvailable); err != nil {
		return err
	}
	for i, node := range nodes {
		if _, err := c.pod(ctx, fmt.Sprintf("%s-%d", app, i), app, node); err != nil {
			return err
		}
	}
	if err := c.healthy(ctx, app, int32(len(nodes))); err != nil {
		return err
	}
	return c.replicas(ctx, app, int32(len(nodes)))
}

// podsOn lists the pods of the cluster's namespace on a node.
func (c *cluster) podsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	list, err := c.api.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (c *cluster) getNode(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node, err := c.api.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	return node
}
