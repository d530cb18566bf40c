// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"os"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// patience bounds each wait for the real server. A mutant has less of it: it is to fail.
func patience() time.Duration {
	if os.Getenv("BELAY_MUTANT") != "" {
		return 10 * time.Second
	}
	return time.Minute
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until done returns the empty string, which otherwise says what is missing.
func eventually(t *testing.T, done func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	pace := testproc.NewPace()
	for {
		missing := done()
		if missing == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %s", patience(), missing)
		case <-pace.Next():
		}
	}
}

// cluster is the shared control plane with a namespace for one test.
type cluster struct {
	env       *testenv.Env
	admin     kubernetes.Interface
	namespace string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	env := shared.Env(t)
	return &cluster{env: env, admin: clientset(t, env.Config()), namespace: env.Namespace(t)}
}

func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

func newClient(t *testing.T, config *rest.Config, o kube.ClientOptions) kube.Client {
	t.Helper()
	client, err := kube.NewClientForConfig(config, nil, o)
	must(t, err)
	return client
}

// runs makes a pod that is bound to a node, if it is given one, and ready.
func (c *cluster) runs(t *testing.T, name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: ptr.To(int64(1)),
			Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	pods := c.admin.CoreV1().Pods(c.namespace)
	pod, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	must(t, err)
	return pod
}

// guards makes a budget for the pods of an app, and gives it the status that a controller would, as changed by change.
func (c *cluster) guards(t *testing.T, name, app string, change func(*policyv1.PodDisruptionBudgetStatus)) {
	t.Helper()
	budgets := c.admin.PolicyV1().PodDisruptionBudgets(c.namespace)
	budget, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 1, DisruptionsAllowed: 1,
	}
	change(&budget.Status)
	_, err = budgets.UpdateStatus(t.Context(), budget, metav1.UpdateOptions{})
	must(t, err)
}

func refTo(pod *corev1.Pod) drain.PodRef {
	return drain.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}
