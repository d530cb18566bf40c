// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A Node is marked by compare-and-swap on the version that was read; what was written is seen though the cache is behind; a Node of the same
// name and another UID is another one.
func TestFleet(t *testing.T) {
	b := newBed(t)
	node, err := b.env.CreateNode(b.ctx(), "fleet", func(n *corev1.Node) { n.Annotations = map[string]string{"theirs": "stays"} })
	b.must(err)
	f := must1(kube.NewFleet(b.client, func() []*corev1.Node { return []*corev1.Node{node} })) // always behind
	var read []controller.Node
	var next controller.Node
	mark := "yes"
	b.eventually("the mark", func(ctx context.Context) (err error) { // the server's controllers may write a new Node too
		if node, err = b.core.CoreV1().Nodes().Get(ctx, "fleet", metav1.GetOptions{}); err != nil {
			return err
		}
		if read, err = f.List(ctx); err != nil {
			return err
		}
		next, err = f.Annotate(ctx, read[0], map[string]*string{"mark": &mark})
		return err
	})
	if _, err := f.Annotate(b.ctx(), read[0], map[string]*string{"mark": nil}); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("Annotate of a version that has passed: %v, want ErrConflict", err)
	}
	seen, err := f.List(b.ctx())
	b.must(err)
	if a := seen[0].Annotations; a["mark"] != "yes" || a["theirs"] != "stays" || seen[0].Version != next.Version {
		t.Errorf("List after the write: annotations %v, version %v, want those of the write, %v", a, seen[0].Version, next.Version)
	}
	b.eventually("the mark is removed", func(ctx context.Context) (err error) {
		if node, err = b.core.CoreV1().Nodes().Get(ctx, "fleet", metav1.GetOptions{}); err != nil {
			return err
		}
		if read, err = f.List(ctx); err != nil {
			return err
		}
		next, err = f.Annotate(ctx, read[0], map[string]*string{"mark": nil})
		return err
	})
	if _, there := next.Annotations["mark"]; there || next.Annotations["theirs"] != "stays" {
		t.Errorf("Annotate with nil: annotations %v, want the mark removed and the other kept", next.Annotations)
	}
	for _, c := range []struct {
		name, uid string
		want      bool
	}{{"fleet", string(node.UID), false}, {"fleet", "another", true}, {"no-such", "u", true}} {
		if gone, err := f.Gone(b.ctx(), c.name, c.uid); err != nil || gone != c.want {
			t.Errorf("Gone(%q, %q): %t, %v, want %t", c.name, c.uid, gone, err, c.want)
		}
	}
}

// What somebody else was faster with is a conflict; an order that was written is seen though the cache is behind.
func TestRecords(t *testing.T) {
	b := newBed(t)
	sh := b.shadow("records", 0)
	r := must1(kube.NewRecords(b.shadows, func() []*v1alpha1.NodeShadow { return []*v1alpha1.NodeShadow{sh} })) // always behind
	read, err := r.List(b.ctx())
	b.must(err)
	next, err := r.Order(b.ctx(), read[0], protocol.Orders{Grant: 1, Revision: "v2@sha256:22"})
	b.must(err)
	if seen, err := r.List(b.ctx()); err != nil || seen[0].Orders != next.Orders {
		t.Errorf("List after the order: %+v, %v, want %+v", seen, err, next.Orders)
	}
	if err := r.Delete(b.ctx(), next); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("Delete of a shadow that was granted: %v, want ErrConflict", err)
	}
	if err := r.Bury(b.ctx(), next); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("Bury of a shadow whose Node is there: %v, want ErrConflict", err)
	}
	if _, err := r.Order(b.ctx(), read[0], protocol.Orders{Revoked: 1}); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("Order on a version that has passed: %v, want ErrConflict", err)
	}
	gone := b.shadow("records-gone", 0)
	b.must(b.core.CoreV1().Nodes().Delete(b.ctx(), "records-gone", metav1.DeleteOptions{}))
	b.eventually("the shadow of a Node that is gone", func(ctx context.Context) error { // the garbage collector may come between
		live, err := r.Get(ctx, gone.Name)
		if err != nil {
			return err
		}
		return r.Bury(ctx, live)
	})
}

// A controller sees the shadows of its own disruption domain alone, and a node is in one domain at a time.
func TestShadowsOfOneDomain(t *testing.T) {
	b := newBed(t)
	uid := b.uid("domain")
	mine, theirs := must1(kube.NewRecords(b.shadows.In("mine"), nil)), must1(kube.NewRecords(b.shadows.In("theirs"), nil))
	sh := protocol.NewShadow("domain", uid, protocol.Ledger{})
	_, err := mine.Create(b.ctx(), sh)
	b.must(err)
	made, err := b.shadows.Get(b.ctx(), "domain")
	b.must(err)
	cached := must1(kube.NewRecords(b.shadows.In("theirs"), func() []*v1alpha1.NodeShadow { return []*v1alpha1.NodeShadow{made} }))
	for name, r := range map[string]controller.Shadows{"mine": mine, "theirs": theirs, "theirs, cached": cached} {
		all, err := r.List(b.ctx())
		b.must(err)
		if there := slices.ContainsFunc(all, func(s controller.Shadow) bool { return s.Node == "domain" }); there != (name == "mine") {
			t.Errorf("the records of %s have the node: %t", name, there)
		}
	}
	_, err = theirs.Create(b.ctx(), sh)
	if !errors.Is(err, controller.ErrOtherDomain) || errors.Is(err, rollout.ErrConflict) || !strings.Contains(err.Error(), `node "domain" is in domain "mine", want "theirs"`) {
		t.Errorf("Create in another domain: got error %v, want ErrOtherDomain with both, and no conflict", err)
	}
	if _, err := mine.Create(b.ctx(), sh); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("Create of what is there: got error %v, want ErrConflict", err)
	}
	change := []byte(`{"spec":{"domain":"theirs"}}`)
	_, err = b.client.Resource(v1alpha1.NodeShadowsResource).Patch(b.ctx(), "domain", types.MergePatchType, change, metav1.PatchOptions{FieldManager: "belay-rollout"})
	if err == nil || !strings.Contains(err.Error(), "domain must not change") {
		t.Errorf("moving a shadow: got error %v, want it refused", err)
	}
}
