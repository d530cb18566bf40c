// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

func refOf(p *corev1.Pod) drain.PodRef {
	return drain.PodRef{Namespace: p.Namespace, Name: p.Name, UID: p.UID}
}

// bubble runs a test in a bubble, on a cluster of its own.
func bubble(t *testing.T, o draintest.Options, test func(t *testing.T, c *draintest.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, draintest.Start(t, o)) })
}

func codeOf(err error) int32 {
	if status, ok := err.(apierrors.APIStatus); ok {
		return status.Status().Code
	}
	return 0
}

func TestAnEvictionSpendsTheBudgetAndTheReplacementRefillsIt(t *testing.T) {
	o := draintest.Options{Termination: 5 * time.Second, Startup: time.Second, Readiness: 2 * time.Second}
	bubble(t, o, func(t *testing.T, c *draintest.Cluster) {
		for _, node := range []string{"n1", "n2", "n3", "n4"} {
			c.AddNode(node)
		}
		c.AddWorkload(draintest.Workload{Name: "web", Replicas: 3, On: []string{"n1", "n2", "n3"}})
		c.AddBudget(draintest.MinAvailable("default", "web", "2", map[string]string{"app": "web"}))
		pod := c.Pods("n1")[0]
		if err := c.Evict(t.Context(), refOf(pod), nil); err != nil {
			t.Fatalf("first eviction: got %v, want it accepted", err)
		}
		if err := c.Evict(t.Context(), refOf(c.Pods("n2")[0]), nil); codeOf(err) != http.StatusTooManyRequests {
			t.Errorf("second eviction: got %v, want 429", err)
		}
		if got := c.LiveBudget("default", "web").Status; got.CurrentHealthy != 2 || got.DisruptionsAllowed != 0 || got.ExpectedPods != 4 {
			t.Errorf("status after the eviction: got %+v, want 2 healthy of 4 expected, none allowed", got)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := c.LiveBudget("default", "web").Status.DisruptionsAllowed; got != 1 {
			t.Errorf("allowed once the replacement is ready: got %d, want 1", got)
		}
		if got := c.Pods("n1")[0]; got.DeletionTimestamp == nil {
			t.Error("evicted pod: got no deletion timestamp, want one until it ends")
		}
		time.Sleep(2 * time.Second)
		if got := c.Pods("n1"); len(got) != 0 {
			t.Errorf("pods of n1 after the termination: got %d, want 0", len(got))
		}
	})
}
