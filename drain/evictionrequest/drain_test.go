// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest_test

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/evictionapi"
)

// A drain of a node asks for the eviction of a pod with a responder, and waits until that has completed. It evicts the
// pod itself then, or finds that the default responder has, and is done when the pod is gone. A node of which the drain
// is cancelled has no request left, and its responder is canceled.
func TestDrainAsksTheController(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b == nil {
		return
	}
	b.run(b.env.Config(), true)
	d, err := kube.Open(t.Context(), b.env.Config(), kube.OpenOptions{})
	b.must(err)
	pods := map[string]drain.PodRef{}
	for _, name := range []string{"done", "cancelled"} {
		node := b.namespace + "-" + name
		_, err := b.env.CreateNode(t.Context(), node)
		b.must(err)
		pods[name] = b.pod(name, func(spec map[string]any) {
			withResponders(responder("acme.io/migrate", 10000))(spec)
			spec["nodeName"] = node
		})
	}
	pass := func(name string, mode drain.Mode) drain.Status {
		st, _, err := d.ReconcileRequest(t.Context(), drain.Request{
			Node: b.namespace + "-" + name, Holder: "test", Maintenance: "m1", Mode: mode,
			Policy: drain.Policy{Unmanaged: drain.EvictPods},
		})
		b.must(err)
		return st
	}
	for name, pod := range pods {
		b.wait(func() error {
			if st := pass(name, drain.Drain); len(st.Blockers) != 1 || st.Blockers[0].Reason != "WaitingForHook" {
				return fmt.Errorf("got %+v, want the drain to wait for the responder", st)
			}
			return nil
		})
		b.waitEviction(pod, func(e *evictionapi.Eviction) error {
			return errors.Join(hasRequesters(e, "belay.dev/drain Eviction"), hasStates(e, map[string]string{
				"acme.io/migrate": "Active", evictionapi.ImperativeEvictor: "Inactive",
			}))
		})
		if b.isTerminating(name) == nil {
			t.Errorf("pod %s: got it ending, want it to wait for its responder", name)
		}
	}

	t.Run("done", func(t *testing.T) { endsDrained(t, b, pods["done"], pass) })
	t.Run("cancelled", func(t *testing.T) { endsReleased(t, b, pods["cancelled"], pass) })
}

// endsDrained plays the end of the responder, and of the pod.
func endsDrained(t *testing.T, b *bed, pod drain.PodRef, pass func(string, drain.Mode) drain.Status) {
	t.Helper()
	e := b.waitEviction(pod, func(*evictionapi.Eviction) error { return nil })
	b.complete(e.Name, "acme.io/migrate")
	b.wait(func() error {
		pass(pod.Name, drain.Drain)
		return b.isTerminating(pod.Name)
	})
	b.kill(pod.Name)
	b.wait(func() error {
		if st := pass(pod.Name, drain.Drain); st.Phase != drain.Drained {
			return fmt.Errorf("got %+v, want it drained", st)
		}
		return nil
	})
}

// endsReleased takes the drain back.
func endsReleased(t *testing.T, b *bed, pod drain.PodRef, pass func(string, drain.Mode) drain.Status) {
	t.Helper()
	b.wait(func() error {
		if st := pass(pod.Name, drain.Release); st.Phase != drain.Released {
			return fmt.Errorf("got %+v, want it released", st)
		}
		return nil
	})
	b.wait(func() error { // an Eviction is removed some time after its last request
		all, err := b.of(pod)
		for _, e := range all {
			err = errors.Join(err, hasStates(e, map[string]string{
				"acme.io/migrate": "Canceled", evictionapi.ImperativeEvictor: "Inactive",
			}))
		}
		return err
	})
	b.wait(func() error {
		list, err := b.requests().List(t.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) != 0 {
			err = fmt.Errorf("got %d EvictionRequests, want none left", len(list.Items))
		}
		return err
	})
	if b.isTerminating(pod.Name) == nil {
		t.Error("got the pod of the cancelled drain ending, want it to run on")
	}
}
