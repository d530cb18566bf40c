// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// users are a controller, and the agent of the node "rights", each with the rights that this package names.
func (b *bed) users() (controller, agent dynamic.Interface) {
	b.t.Helper()
	controller = b.user("rights-controller", kube.ControllerRules(), func(ctx context.Context, c dynamic.Interface) error {
		_, err := must1(kube.NewShadows(c)).List(ctx)
		return err
	})
	agent = b.user("rights-agent", kube.AgentRules("rights"), func(ctx context.Context, c dynamic.Interface) error {
		_, err := must1(kube.NewShadows(c)).Get(ctx, "rights")
		if err != nil && apierrors.IsForbidden(err) {
			return err
		}
		return nil
	})
	return controller, agent
}

// R-RO-02, R-RO-06: each side can do its part with the rights that are named for it, and what it writes on the other's part is refused.
func TestRightsOfTheSides(t *testing.T) {
	b := newBed(t)
	controller, agent := b.users()
	orders, reports := must1(kube.NewShadows(controller)), must1(kube.NewShadows(agent))
	sh, err := orders.Create(b.ctx(), protocol.NewShadow("rights", b.uid("rights"), protocol.Ledger{}))
	b.must(err)
	sh, err = reports.Report(b.ctx(), sh, with(sh, protocol.Report{Known: true}), time.Unix(1e9, 0))
	b.must(err)
	_, err = orders.Order(b.ctx(), sh, protocol.Orders{Grant: 1, Revision: "v2"})
	b.must(err)
	sh, err = reports.Get(b.ctx(), "rights")
	b.must(err)
	_, err = must1(kube.NewLedgerStore(controller, "rights")).Store(b.ctx(), protocol.Ledger{}, "")
	b.must(err)

	commit := protocol.Report{Known: true, Attempt: 1, Phase: protocol.PhaseCommitted, Revision: "v2"}
	other := b.shadow("rights-other", 0)
	forbidden := map[string]error{}
	_, forbidden["a report by the controller"] = orders.Report(b.ctx(), sh, with(sh, commit), time.Unix(1e9, 0))
	_, forbidden["an order by the agent"] = reports.Order(b.ctx(), sh, protocol.Orders{Grant: 2, Revision: "v2"})
	_, forbidden["a report on another node"] = reports.Report(b.ctx(), other, with(other, protocol.Report{Known: true, Staged: "v2"}), time.Unix(1e9, 0))
	_, forbidden["reading another node's shadow"] = reports.Get(b.ctx(), "rights-other")
	_, forbidden["listing all shadows by the agent"] = reports.List(b.ctx())
	_, forbidden["a shadow by the agent"] = reports.Create(b.ctx(), protocol.NewShadow("rights-new", "u", protocol.Ledger{}))
	forbidden["a deletion by the agent"] = agent.Resource(v1alpha1.NodeShadowsResource).Delete(b.ctx(), "rights", metav1.DeleteOptions{})
	_, _, forbidden["the ledger read by the agent"] = must1(kube.NewLedgerStore(agent, "rights")).Load(b.ctx())
	_, forbidden["the ledger written by the agent"] = must1(kube.NewLedgerStore(agent, "rights-mine")).Store(b.ctx(), protocol.Ledger{}, "")
	for what, err := range forbidden {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got error %v, want Forbidden", what, err)
		}
	}
	b.must(orders.Delete(b.ctx(), b.shadow("rights-removed", 0)))
	b.shadow("rights-buried", 0)
	b.must(b.core.CoreV1().Nodes().Delete(b.ctx(), "rights-buried", metav1.DeleteOptions{}))
	b.eventually("the shadow of a Node that is gone", func(ctx context.Context) error { // the garbage collector may come between
		sh, err := orders.Get(ctx, "rights-buried")
		if err != nil {
			return err
		}
		return orders.Bury(ctx, sh)
	})
}

// R-RO-02: what one side slips into its own write, of the other's part, has no effect: not through the other endpoint either.
func TestSidesAreApart(t *testing.T) {
	b := newBed(t)
	sh := b.shadow("apart", 0)
	client := b.client.Resource(v1alpha1.NodeShadowsResource)
	both := `{"metadata":{"finalizers":null,"ownerReferences":null},"spec":{"stage":{"name":"by-status"}},"status":{"reason":"ByStatus"}}`
	_, err := client.Patch(b.ctx(), "apart", types.MergePatchType, []byte(both), metav1.PatchOptions{}, "status")
	b.must(err)
	_, err = client.Patch(b.ctx(), "apart", types.MergePatchType, []byte(`{"spec":{"stage":{"name":"by-spec"}},"status":{"reason":"BySpec"}}`), metav1.PatchOptions{})
	b.must(err)
	got, err := b.shadows.Get(b.ctx(), "apart")
	b.must(err)
	if got.Spec.Stage.String() != "by-spec" || got.Status.Reason != "ByStatus" {
		t.Errorf("got stage %q and reason %q, want each by its own endpoint", got.Spec.Stage, got.Status.Reason)
	}
	if len(got.Finalizers) != len(sh.Finalizers) || len(got.OwnerReferences) != len(sh.OwnerReferences) {
		t.Errorf("got finalizers %v, owners %v after a write of the status, want them untouched", got.Finalizers, got.OwnerReferences)
	}
}
