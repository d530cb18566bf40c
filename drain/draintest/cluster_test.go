// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// bubble runs a test in a bubble, on a cluster of its own.
func bubble(t *testing.T, o draintest.Options, test func(t *testing.T, c *draintest.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, draintest.Start(t, o)) })
}

func codeOf(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
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
		if err := c.Evict(t.Context(), draintest.RefTo(pod), nil); err != nil {
			t.Fatalf("first eviction: got %v, want it accepted", err)
		}
		if err := c.Evict(t.Context(), draintest.RefTo(c.Pods("n2")[0]), nil); codeOf(err) != http.StatusTooManyRequests {
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

// pass lets time pass and everything settle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestTheCacheLagsBehindTheServer(t *testing.T) {
	bubble(t, draintest.Options{CacheLag: time.Second}, func(t *testing.T, c *draintest.Cluster) {
		var told []string
		stop := c.Watch(func(change drain.Change) { told = append(told, change.Node) })
		c.AddNode("n1")
		if c.Node("n1") != nil || c.LiveNode("n1") == nil {
			t.Error("new node: got it in the cache or not on the server, want it on the server alone")
		}
		pass(time.Second)
		if c.Node("n1") == nil || len(told) != 1 || told[0] != "n1" {
			t.Errorf("after the lag: got node %v, told %v, want both", c.Node("n1"), told)
		}
		stop()
		c.DeleteNode("n1")
		pass(time.Second)
		if len(told) != 1 || c.Node("n1") != nil {
			t.Errorf("after stop: got told %v, want nothing more, and the node gone", told)
		}
	})
}

func TestAWatchThatIsLostFreezesTheCache(t *testing.T) {
	bubble(t, draintest.Options{CacheLag: time.Second}, func(t *testing.T, c *draintest.Cluster) {
		c.AddNode("n1")
		c.AddPod("default", "old", "n1")
		pass(time.Second)
		c.AddPod("default", "late", "n1") // on its way to the cache when the watch goes
		c.DropWatch()
		c.Finish("default", "old")
		pass(time.Minute)
		if got := c.Pods("n1"); len(got) != 1 || got[0].Name != "old" {
			t.Errorf("frozen cache: got %d pods, want old alone", len(got))
		}
		told := 0
		c.Watch(func(drain.Change) { told++ })
		c.RestoreWatch()
		pass(0)
		if got := c.Pods("n1"); len(got) != 1 || got[0].Name != "late" || told == 0 {
			t.Errorf("restored cache: got %d pods, told %d times, want late alone, and to be told", len(got), told)
		}
	})
}

func TestANodeOfTheSameNameHasAnotherUID(t *testing.T) {
	bubble(t, draintest.Options{}, func(t *testing.T, c *draintest.Cluster) {
		first := c.AddNode("n1")
		c.AddPod("default", "a", "n1")
		c.DeleteNode("n1")
		pass(41 * time.Second)
		if got := c.LivePods("n1"); len(got) != 0 {
			t.Errorf("pods of a node that is gone: got %d, want them collected", len(got))
		}
		if second := c.AddNode("n1"); second.UID == first.UID {
			t.Errorf("UID: got %s twice, want another", second.UID)
		}
	})
}

func TestANodeWithoutAKubeletIsGivenUpUnlessSomebodyRenewsItsLease(t *testing.T) {
	for _, kept := range []bool{true, false} {
		bubble(t, draintest.Options{}, func(t *testing.T, c *draintest.Cluster) {
			c.AddNode("n1")
			c.AddNode("n2")
			c.AddWorkload(draintest.Workload{Name: "web", Replicas: 1, On: []string{"n1"}})
			c.StopKubelet("n1")
			for range 40 {
				if kept {
					if err := c.Renew(t.Context(), "n1"); err != nil {
						t.Fatal(err)
					}
				}
				pass(10 * time.Second)
			}
			pod := c.LivePods("n1")[0]
			if leaving := pod.DeletionTimestamp != nil; leaving == kept {
				t.Errorf("Lease kept: %v: got a pod that is being deleted: %v", kept, leaving)
			}
			if got := len(c.LivePods("n2")); (got == 0) != kept {
				t.Errorf("Lease kept: %v: got %d pods on the other node", kept, got)
			}
			c.StartKubelet("n1")
			pass(time.Minute)
			if got := c.LivePods("n1"); kept != (len(got) == 1) {
				t.Errorf("Lease kept: %v: got %d pods once the kubelet is back", kept, len(got))
			}
		})
	}
}

func TestOwnersReplaceTheirPods(t *testing.T) {
	o := draintest.Options{Termination: 5 * time.Second}
	bubble(t, o, func(t *testing.T, c *draintest.Cluster) {
		c.AddNode("n1")
		c.AddWorkload(draintest.Workload{Kind: draintest.StatefulSet, Name: "db", Replicas: 1})
		c.AddWorkload(draintest.Workload{Kind: draintest.DaemonSet, Name: "agent"})
		c.AddWorkload(draintest.Workload{Name: "web", Replicas: 1})
		c.AddNode("n2")
		c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		pass(0)
		before := c.LivePod("default", "db-0")
		for _, pod := range c.LivePods("n1") {
			if err := c.Delete(t.Context(), draintest.RefTo(pod), nil); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		if got := c.LivePod("default", "db-0"); got.UID != before.UID {
			t.Error("pod of a StatefulSet: got it replaced before it was gone")
		}
		if got := len(c.LivePods("n2")); got != 2 {
			t.Errorf("pods on the other node after 1 s: got %d, want one of the ReplicaSet and one of the DaemonSet", got)
		}
		pass(5 * time.Second)
		if got := c.LivePod("default", "db-0"); got == nil || got.UID == before.UID || got.Spec.NodeName != "n2" {
			t.Errorf("pod of a StatefulSet: got %+v, want another UID on n2", got)
		}
		if got := c.LivePods("n1"); len(got) != 1 || got[0].OwnerReferences[0].Kind != draintest.DaemonSet {
			t.Errorf("cordoned node: got %d pods, want that of the DaemonSet alone", len(got))
		}
		if n := c.LiveNode("n1"); len(n.Spec.Taints) != 1 {
			t.Errorf("taints of a cordoned node: got %v, want that of the node lifecycle controller", n.Spec.Taints)
		}
	})
}

func TestFaultsMeetTheRequestsThatTheyAreFor(t *testing.T) {
	bubble(t, draintest.Options{Latency: time.Second}, func(t *testing.T, c *draintest.Cluster) {
		c.AddNode("n1")
		var pods []drain.PodRef
		for _, name := range []string{"a", "b", "c", "d"} {
			pods = append(pods, draintest.RefTo(c.AddPod("default", name, "n1")))
		}
		c.Faults(
			draintest.On(draintest.Evict, 1, draintest.TimeoutBefore(time.Minute)),
			draintest.On(draintest.Evict, 2, draintest.TimeoutAfter(time.Minute)),
			draintest.On(draintest.AnyWrite, 4, draintest.CrashAfter()),
		)
		want := []struct {
			err   error
			wrote bool
			took  time.Duration
		}{{context.DeadlineExceeded, false, 61 * time.Second}, {context.DeadlineExceeded, true, 61 * time.Second}, {nil, true, time.Second}, {draintest.ErrCrash, true, time.Second}}
		for _, pod := range pods {
			_ = c.Evict(t.Context(), pod, nil)
		}
		log := c.Log(draintest.Evict)
		for i, call := range log {
			if w := want[i]; !errors.Is(call.Err, w.err) || call.Wrote != w.wrote || call.Answered.Sub(call.Started) != w.took || call.UID != pods[i].UID {
				t.Errorf("request %d: got %v after %v, wrote: %v; want %+v", i+1, call, call.Answered.Sub(call.Started), call.Wrote, w)
			}
		}
		if _, err := c.ListPods(t.Context(), "n1"); !errors.Is(err, draintest.ErrCrash) || len(c.Log()) != 4 {
			t.Errorf("request of a dead process: got %v and %d requests in the log, want ErrCrash and 4", err, len(c.Log()))
		}
		c.Revive()
		if _, err := c.ListPods(t.Context(), "n1"); err != nil {
			t.Errorf("request of the next process: got %v", err)
		}
	})
}
