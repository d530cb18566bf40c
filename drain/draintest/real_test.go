// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/tier"
)

// shared has the disruption controller and no other: owners and kubelets are the test's.
var shared = testenv.Shared{Options: testenv.Options{
	With: []testenv.Component{testenv.ControllerManager},
	Args: map[testenv.Component][]string{testenv.ControllerManager: {"--controllers=disruption-controller"}},
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// TestTheServerFollowsItsRules runs the rules on a real API server and its disruption controller: what the fake is held to is true.
func TestTheServerFollowsItsRules(t *testing.T) {
	env := shared.Env(t)
	draintest.TestServer(t, func(t *testing.T) draintest.Fixture { return newReal(t, env) })
}

// real is a fixture on a control plane.
type real struct {
	env    *testenv.Env
	typed  kubernetes.Interface
	client kube.Client
}

func newReal(t *testing.T, env *testenv.Env) real {
	t.Helper()
	client, err := kube.NewClientForConfig(env.Config(), nil, kube.ClientOptions{QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	r := real{env: env, typed: kubernetes.NewForConfigOrDie(env.Config()), client: client}
	r.Controller(t, true)
	t.Cleanup(func() { r.Controller(t, true) })
	return r
}

// must ends the test where a call of the fixture itself failed.
func must[T any](t *testing.T, what string, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return v
}

func (r real) Namespace(t *testing.T) string { return r.env.Namespace(t) }

func (r real) TerminateNamespace(t *testing.T, namespace string) {
	t.Helper()
	err := r.typed.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{})
	must(t, "deleting the namespace", 0, err)
}

func (r real) Node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node, err := r.env.CreateNode(t.Context(), name)
	return must(t, "making a node", node, err)
}

func (r real) Owner(t *testing.T, kind, namespace, name string, replicas int32) types.UID {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name}
	labels := map[string]string{"app": name}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	if kind == draintest.StatefulSet {
		spec := appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector, Template: template}
		o, err := r.typed.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: meta, Spec: spec}, metav1.CreateOptions{})
		return must(t, "making a StatefulSet", o, err).UID
	}
	spec := appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector, Template: template}
	o, err := r.typed.AppsV1().ReplicaSets(namespace).Create(t.Context(), &appsv1.ReplicaSet{ObjectMeta: meta, Spec: spec}, metav1.CreateOptions{})
	return must(t, "making a ReplicaSet", o, err).UID
}

func (r real) Pod(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	made, err := r.typed.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	made = must(t, "making a pod", made, err)
	made.Status = pod.Status
	made, err = r.typed.CoreV1().Pods(pod.Namespace).UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	return must(t, "writing the pod's status", made, err)
}

func (r real) SetStatus(t *testing.T, pod *corev1.Pod, phase corev1.PodPhase, ready bool) {
	t.Helper()
	pods := r.typed.CoreV1().Pods(pod.Namespace)
	must(t, "writing the pod's status", 0, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Status.Phase = phase
		now.Status.Conditions = slices.DeleteFunc(now.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
		cond := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
		if ready {
			cond.Status = corev1.ConditionTrue
		}
		now.Status.Conditions = append(now.Status.Conditions, cond)
		_, err = pods.UpdateStatus(t.Context(), now, metav1.UpdateOptions{})
		return err
	}))
}

func (r real) Finish(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	o := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	if err := r.typed.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, o); err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("finishing the pod: %v", err)
	}
}

func (r real) Budget(t *testing.T, b *policyv1.PodDisruptionBudget) {
	t.Helper()
	_, err := r.typed.PolicyV1().PodDisruptionBudgets(b.Namespace).Create(t.Context(), b, metav1.CreateOptions{})
	must(t, "making a budget", 0, err)
}

func (r real) ChangeBudget(t *testing.T, namespace, name string, change func(*policyv1.PodDisruptionBudgetSpec)) {
	t.Helper()
	budgets := r.typed.PolicyV1().PodDisruptionBudgets(namespace)
	must(t, "changing the budget", 0, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		b, err := budgets.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&b.Spec)
		_, err = budgets.Update(t.Context(), b, metav1.UpdateOptions{})
		return err
	}))
}

func (r real) SetBudgetStatus(t *testing.T, namespace, name string, change func(*policyv1.PodDisruptionBudgetStatus)) {
	t.Helper()
	budgets := r.typed.PolicyV1().PodDisruptionBudgets(namespace)
	must(t, "writing the budget's status", 0, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		b, err := budgets.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&b.Status)
		_, err = budgets.UpdateStatus(t.Context(), b, metav1.UpdateOptions{})
		return err
	}))
}

func (r real) Controller(t *testing.T, run bool) {
	t.Helper()
	server := r.env.Server(testenv.ControllerManager)
	act := server.Pause
	if run {
		act = server.Resume
	}
	must(t, "pausing the controller manager", 0, act())
}

func (r real) GetPod(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	pod, err := r.typed.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return must(t, "reading the pod", pod, err)
}

func (r real) GetBudget(t *testing.T, namespace, name string) *policyv1.PodDisruptionBudget {
	t.Helper()
	b, err := r.typed.PolicyV1().PodDisruptionBudgets(namespace).Get(t.Context(), name, metav1.GetOptions{})
	return must(t, "reading the budget", b, err)
}

func (r real) Client() drain.Client { return r.client }

func (r real) DryRun(ctx context.Context, pod drain.PodRef) error {
	return r.client.DryRunEvict(ctx, pod)
}

// TestTheServerAndTheClusterInMemoryDoNotDrift does the same random steps to both.
func TestTheServerAndTheClusterInMemoryDoNotDrift(t *testing.T) {
	env := shared.Env(t)
	seeds := uint64(2)
	if tier.RunsWhole(t) {
		seeds = 8
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			draintest.CompareServers(t, seed, 50, draintest.NewFixture(t), newReal(t, env))
		})
	}
}
