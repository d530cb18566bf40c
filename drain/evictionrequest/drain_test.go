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
	wanted := func(name string, mode drain.Mode) drain.Request {
		return drain.Request{
			Node: b.namespace + "-" + name, Holder: "test", Maintenance: "m1", Mode: mode,
			Policy: drain.Policy{Unmanaged: drain.EvictPods},
		}
	}
	pass := func(name string, mode drain.Mode) drain.Status {
		st, _, err := d.ReconcileRequest(t.Context(), wanted(name, mode))
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

	e := b.waitEviction(pods["done"], func(*evictionapi.Eviction) error { return nil })
	b.complete(e.Name, "acme.io/migrate")
	b.wait(func() error {
		pass("done", drain.Drain)
		return b.isTerminating("done")
	})
	b.kill("done")
	b.wait(func() error {
		if st := pass("done", drain.Drain); st.Phase != drain.Drained {
			return fmt.Errorf("got %+v, want it drained", st)
		}
		return nil
	})

	b.wait(func() error {
		if st := pass("cancelled", drain.Release); st.Phase != drain.Released {
			return fmt.Errorf("got %+v, want it released", st)
		}
		return nil
	})
	b.waitEviction(pods["cancelled"], func(e *evictionapi.Eviction) error {
		return hasStates(e, map[string]string{"acme.io/migrate": "Canceled", evictionapi.ImperativeEvictor: "Inactive"})
	})
	b.wait(func() error {
		list, err := b.requests().List(t.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) != 0 {
			err = fmt.Errorf("got %d EvictionRequests, want none left", len(list.Items))
		}
		return err
	})
	if b.isTerminating("cancelled") == nil {
		t.Error("got the pod of the cancelled drain ending, want it to run on")
	}
}
