// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

func fakeClientset() kubernetes.Interface { return fake.NewClientset() }

// TestDrainNode drains a node in one call, finds it drained, and releases it in another.
func TestDrainNode(t *testing.T) {
	c := newCluster(t)
	node := c.nodeWithPods(t, "app", "other")
	defer c.playKubelet(t, node)()
	options := kube.DrainOptions{Policy: evictAll("").Policy}
	var reports int
	options.Report = func(drain.Status) { reports++ }
	st, err := kube.DrainNode(t.Context(), c.env.Config(), node, options)
	if err != nil || st.Phase != drain.Drained || len(st.Evicted) != 2 || reports == 0 {
		t.Errorf("got %+v, error %v and %d reports, want the node Drained of 2 pods", st, err, reports)
	}
	if got, err := c.admin.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{}); err != nil || !got.Spec.Unschedulable {
		t.Errorf("got %+v and error %v, want the node cordoned", got, err)
	}
	st, err = kube.ReleaseNode(t.Context(), c.env.Config(), node, options)
	if err != nil || st.Phase != drain.Released {
		t.Errorf("got %+v and error %v, want the node Released", st, err)
	}
	if got, err := c.admin.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{}); err != nil || got.Spec.Unschedulable || len(got.Annotations[drain.MarkAnnotation]) > 0 {
		t.Errorf("got %+v and error %v, want the node as it was", got, err)
	}
}

// TestDrainNodeLeavesNothingInTheSum shows that the phases that Metrics are told add up to the nodes at work: to none
// after each call.
func TestDrainNodeLeavesNothingInTheSum(t *testing.T) {
	c := newCluster(t)
	node := c.nodeWithPods(t)
	sum, told := map[drain.Phase]int{}, 0
	options := kube.DrainOptions{Maintenance: "sum"}
	options.Open.Drain.Metrics.Phase = func(from, to drain.Phase) {
		told++
		sum[from]--
		sum[to]++
	}
	for range 2 {
		if _, err := kube.DrainNode(t.Context(), c.env.Config(), node, options); err != nil {
			t.Fatal(err)
		}
		delete(sum, "") // what is not told of
		if maps.DeleteFunc(sum, func(_ drain.Phase, n int) bool { return n == 0 }); len(sum) != 0 {
			t.Errorf("after a drain, nodes by phase: %v, want none", sum)
		}
	}
	if told == 0 {
		t.Error("no phase was told")
	}
}

// TestDrainNodeThatCannotBeDrained shows the errors of the one-shot: a pod that stays, a Node that does not exist, a
// right that is missing, a context that ends.
func TestDrainNodeThatCannotBeDrained(t *testing.T) {
	c := newCluster(t)
	node := c.nodeWithPods(t, "app")
	c.runs(t, "debug", node)
	st, err := kube.DrainNode(t.Context(), c.env.Config(), node, kube.DrainOptions{Timeout: 5 * time.Second})
	var left *kube.NotDrainedError
	if !errors.As(err, &left) || left.Status.Phase == drain.Drained || !strings.Contains(err.Error(), "/debug: no controller") || st.Node != node {
		t.Errorf("got %+v and error %v, want a NotDrainedError that names the pod debug", st, err)
	}
	_, err = kube.DrainNode(t.Context(), c.env.Config(), "no-such-node", kube.DrainOptions{})
	if !errors.Is(err, drain.ErrNodeNotFound) || !strings.Contains(err.Error(), `"no-such-node"`) {
		t.Errorf("got error %v, want ErrNodeNotFound", err)
	}
	user := "drainer-" + c.namespace
	c.allow(t, user, rbacv1.PolicyRule{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"nodes"}})
	begun := time.Now()
	_, err = kube.Open(t.Context(), c.env.User(t, user), kube.OpenOptions{})
	if err == nil || !strings.Contains(err.Error(), user) || !strings.Contains(err.Error(), "pods") || time.Since(begun) > 20*time.Second {
		t.Errorf("after %s: got error %v, want the right that is missing, at once", time.Since(begun), err)
	}
}

// TestDrainNodeGivesBack shows a drain whose context ends: the error names the pod that is left, and the node is given
// back.
func TestDrainNodeGivesBack(t *testing.T) {
	c := newCluster(t)
	node := c.nodeWithPods(t, "app")
	c.runs(t, "debug", node)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := kube.DrainNode(ctx, c.env.Config(), node, kube.DrainOptions{Holder: "cancelled", Report: func(st drain.Status) {
		if st.Phase == drain.Draining {
			cancel()
		}
	}})
	cancel()
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "/debug: no controller") {
		t.Errorf("got error %v, want that of the context, and the pod that is left", err)
	}
	_, err = kube.ReleaseNode(t.Context(), c.env.Config(), node, kube.DrainOptions{})
	must(t, err)
	if got, err := c.admin.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{}); err != nil || got.Spec.Unschedulable {
		t.Errorf("got %+v and error %v, want the node given back", got, err)
	}
}

// TestDrainNodeTwiceAtOnce has two people drain one node under the same holder, where no pod may leave: the later one
// goes on, the earlier one ends, and its end does not open the node of the other.
func TestDrainNodeTwiceAtOnce(t *testing.T) {
	c := newCluster(t)
	node := c.nodeWithPods(t, "app")
	_, err := c.admin.PolicyV1().PodDisruptionBudgets(c.namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{}, MaxUnavailable: ptr.To(intstr.FromInt32(0)),
		},
	}, metav1.CreateOptions{})
	must(t, err)
	begin := func() (stop context.CancelFunc, ended <-chan error) {
		ctx, cancel := context.WithCancel(t.Context())
		draining, end := make(chan struct{}), make(chan error, 1)
		begun := sync.OnceFunc(func() { close(draining) })
		go func() {
			o := kube.DrainOptions{Policy: evictAll("").Policy, Report: func(st drain.Status) {
				if st.Phase == drain.Draining {
					begun()
				}
			}}
			_, err := kube.DrainNode(ctx, c.env.Config(), node, o)
			begun()
			end <- err
		}()
		<-draining
		return cancel, end
	}
	stopFirst, first := begin()
	defer stopFirst()
	stopSecond, second := begin()
	defer stopSecond()
	var left *kube.NotDrainedError
	if err := <-first; !errors.As(err, &left) || left.Status.Reason != drain.Superseded || left.Err != nil {
		t.Errorf("the first drain ended with %v, want %s", err, drain.Superseded)
	}
	got, err := c.admin.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil || !got.Spec.Unschedulable {
		t.Errorf("got %+v and error %v, want the node cordoned for the second drain", got, err)
	}
	stopSecond()
	if err := <-second; !errors.As(err, &left) || !errors.Is(err, context.Canceled) {
		t.Errorf("the second drain ended with %v, want its context's error", err)
	}
	got, err = c.admin.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil || got.Spec.Unschedulable || got.Annotations[drain.MarkAnnotation] != "" {
		t.Errorf("got %+v and error %v, want the node given back", got, err)
	}
}

// TestClientOfAClientset evicts through a clientset that the embedder has.
func TestClientOfAClientset(t *testing.T) {
	c := newCluster(t)
	client, err := kube.NewClient(c.admin, kube.ClientOptions{})
	must(t, err)
	pod := c.runs(t, "app", c.namespace)
	must(t, client.Evict(t.Context(), refTo(pod), nil))
	pods, err := client.ListPods(t.Context(), c.namespace)
	if err != nil || len(pods) != 1 || pods[0].DeletionTimestamp == nil {
		t.Errorf("got %v and error %v, want the pod ending", pods, err)
	}
}

// Both recorders of client-go can be used.
var (
	_ drain.Recorder    = events.EventRecorder(nil)
	_ kube.CoreRecorder = record.EventRecorder(nil)
)

// TestCoreRecorder shows what an event of the core API has of one of a drain.
func TestCoreRecorder(t *testing.T) {
	recorder := record.NewFakeRecorder(1)
	r := kube.NewCoreRecorder(recorder)
	r.Eventf(&metav1.PartialObjectMetadata{}, runtime.Object(nil), "Normal", "Drained", "Drain", "%d pods left", 3)
	if got, want := fmt.Sprint(<-recorder.Events), "Normal Drained 3 pods left"; got != want {
		t.Errorf("got the event %q, want %q", got, want)
	}
	if r := kube.NewCoreRecorder(nil); r != nil {
		t.Errorf("got %v of no recorder, want nil", r)
	}
}
