// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// gone reports whether there is no shadow of that name.
func (b *bed) gone(name string) bool {
	b.t.Helper()
	_, err := b.shadows.Get(b.ctx(), name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.t.Fatal(err)
	}
	return err != nil
}

// R-RO-04: the shadow of a node that lives on goes when the node is at rest and has been granted nothing, and not before.
func TestDelete(t *testing.T) {
	b := newBed(t)
	sh, err := b.shadows.Create(b.ctx(), protocol.NewShadow("delete", b.uid("delete"), protocol.Ledger{}))
	b.must(err)
	refused := func(when string) {
		t.Helper()
		made := b.calls.since(func() { err = b.shadows.Delete(b.ctx(), sh) })
		if !errors.Is(err, kube.ErrNotRemovable) || len(made) > 0 {
			t.Errorf("%s: got error %v after calls %q, want ErrNotRemovable and none", when, err, made)
		}
	}
	refused("before the agent has spoken")
	before := b.report(sh, protocol.Report{Known: true})
	sh = b.order(before, protocol.Orders{Grant: 1, Revision: "v2"})
	refused("with an open grant")
	if err := b.shadows.Delete(b.ctx(), before); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("Delete of a version that was granted since: got error %v, want ErrConflict", err)
	}
	r := protocol.Report{Known: true, Attempt: 1, Phase: protocol.PhaseCommitted, Revision: "v2"}
	sh = b.report(sh, r)
	refused("of a committed node")
	sh = b.order(sh, protocol.Orders{Grant: 1, Undo: 1, Revision: "v2"})
	r.Phase = protocol.PhaseUndone
	sh = b.report(sh, r)
	b.must(b.shadows.Delete(b.ctx(), sh))
	if !b.gone("delete") {
		t.Error("the shadow is there after its deletion, want it gone")
	}
	if err := b.shadows.Delete(b.ctx(), sh); err != nil {
		t.Errorf("Delete of what is gone: got error %v, want none", err)
	}
}

// Somebody who is not of this package grants an attempt while the shadow is being deleted: it is kept, wherever that comes between.
func TestDeleteIsOvertaken(t *testing.T) {
	b := newBed(t)
	grant := []byte(`{"spec":{"grant":1,"revision":{"name":"v2"}}}`)
	for call, want := range map[string]error{"DELETE": kube.ErrNotRemovable, "GET": rollout.ErrConflict} {
		name := "overtaken-after-" + strings.ToLower(call)
		sh := b.shadow(name, 0)
		b.calls.once(call, func() {
			_, err := b.client.Resource(v1alpha1.NodeShadowsResource).Patch(b.ctx(), name, types.MergePatchType, grant, metav1.PatchOptions{})
			b.must(err)
		})
		if err := b.shadows.Delete(b.ctx(), sh); !errors.Is(err, want) || b.gone(name) {
			t.Errorf("granted after %s: got error %v, want %q, and the shadow kept", call, err, want)
		}
	}
}

// A shadow that somebody deletes by hand while its node is disrupted stays until that has ended, goes on being written, and is granted
// nothing more.
func TestDeletedByHand(t *testing.T) {
	b := newBed(t)
	sh := b.order(b.shadow("by-hand", 0), protocol.Orders{Grant: 1, Revision: "v2"})
	b.must(b.client.Resource(v1alpha1.NodeShadowsResource).Delete(b.ctx(), "by-hand", metav1.DeleteOptions{}))
	sh, err := b.shadows.Get(b.ctx(), sh.Name)
	b.must(err)
	r := protocol.Report{Known: true, Attempt: 1, Phase: protocol.PhaseCommitted, Revision: "v2"}
	sh = b.report(sh, r)
	if err := b.shadows.Delete(b.ctx(), sh); !errors.Is(err, kube.ErrNotRemovable) || b.gone("by-hand") {
		t.Errorf("Delete of a committed node: got error %v, want ErrNotRemovable, and the shadow kept", err)
	}
	if _, err := b.shadows.Order(b.ctx(), sh, protocol.Orders{Grant: 2, Revision: "v2"}); !errors.Is(err, kube.ErrDeleting) {
		t.Errorf("grant: got error %v, want ErrDeleting", err)
	}
	sh = b.order(sh, protocol.Orders{Grant: 1, Proceed: 1, Revision: "v2"})
	r.Phase = protocol.PhaseDone
	sh = b.report(sh, r)
	b.must(b.shadows.Delete(b.ctx(), sh))
	if !b.gone("by-hand") {
		t.Error("the shadow is there after the attempt has ended, want it gone")
	}
}

// Finalizers of others are left alone.
func TestDeleteLeavesOtherFinalizers(t *testing.T) {
	b := newBed(t)
	sh := b.shadow("finalizers", 0)
	patch := fmt.Sprintf(`{"metadata":{"finalizers":[%q,"example.com/other"]}}`, "rollout.belay.dev/shadow")
	_, err := b.client.Resource(v1alpha1.NodeShadowsResource).Patch(b.ctx(), sh.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	b.must(err)
	sh, err = b.shadows.Get(b.ctx(), sh.Name)
	b.must(err)
	b.must(b.shadows.Delete(b.ctx(), sh))
	sh, err = b.shadows.Get(b.ctx(), sh.Name)
	b.must(err)
	if len(sh.Finalizers) != 1 || sh.Finalizers[0] != "example.com/other" || sh.DeletionTimestamp == nil {
		t.Errorf("got finalizers %v, deleted %v, want only that of the other one left, and the shadow marked", sh.Finalizers, sh.DeletionTimestamp)
	}
}

// R-RO-03: the shadow of a Node that is gone is collected, whatever it says; one that is registered anew under the name is another Node, which
// honours no grant of the old one.
func TestNodeIsRegisteredAnew(t *testing.T) {
	b := newBed(t)
	sh := b.shadow("anew", 0)
	old := sh.Spec.NodeUID
	granted := b.order(sh, protocol.Orders{Grant: 5, Revision: "v2"})
	if err := b.shadows.Bury(b.ctx(), granted); !errors.Is(err, kube.ErrNodeExists) {
		t.Fatalf("Bury while the Node lives: got error %v, want ErrNodeExists", err)
	}
	b.must(b.core.CoreV1().Nodes().Delete(b.ctx(), "anew", metav1.DeleteOptions{}))
	next := b.uid("anew")
	b.eventually("the garbage collector", func(ctx context.Context) (err error) {
		if sh, err = b.shadows.Get(ctx, "anew"); err == nil && sh.DeletionTimestamp == nil {
			err = errors.New("the shadow is not marked as deleted")
		}
		return err
	})
	fresh := protocol.NewShadow("anew", next, protocol.Ledger{Epoch: 5})
	if _, err := b.shadows.Create(b.ctx(), fresh); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("Create beside the old shadow: got error %v, want ErrConflict", err)
	}
	b.must(b.shadows.Bury(b.ctx(), sh))
	made, err := b.shadows.Create(b.ctx(), fresh)
	b.must(err)
	if got := v1alpha1.ShadowOf(made); got != fresh || got.Open() {
		t.Errorf("the new shadow is %+v, want %+v, without a grant", got, fresh)
	}
	slot := protocol.Slot{Node: "anew", UID: old, Attempt: 6}
	if _, err := v1alpha1.ShadowOf(made).Give(slot, "v2", false); err == nil {
		t.Error("a grant for the old Node: got no error, want it refused")
	}
	if _, err := b.shadows.Order(b.ctx(), granted, protocol.Orders{Grant: 6, Revision: "v2"}); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("an order to the old shadow: got error %v, want ErrConflict", err)
	}
}
