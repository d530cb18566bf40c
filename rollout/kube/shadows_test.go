// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// R-RO-03: a shadow belongs to its Node by UID, has its finalizer, and is made once. It grants nothing that was admitted before.
func TestCreate(t *testing.T) {
	b := newBed(t)
	uid := b.uid("create")
	if _, err := b.shadows.Get(b.ctx(), "create"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get of no shadow: got error %v, want fs.ErrNotExist", err)
	}
	want := protocol.NewShadow("create", uid, protocol.Ledger{Epoch: 4})
	made, err := b.shadows.Create(b.ctx(), want)
	b.must(err)
	got, err := b.shadows.Get(b.ctx(), "create")
	b.must(err)
	if sh := v1alpha1.ShadowOf(got); sh != want || got.ResourceVersion != made.ResourceVersion {
		t.Errorf("Get: got %+v, want %+v", sh, want)
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "create", UID: types.UID(uid)}
	if !slices.Equal(got.OwnerReferences, []metav1.OwnerReference{owner}) || !slices.Equal(got.Finalizers, []string{"rollout.belay.dev/shadow"}) {
		t.Errorf("got owners %v, finalizers %v, want %v and %q", got.OwnerReferences, got.Finalizers, owner, "rollout.belay.dev/shadow")
	}
	if _, err := b.shadows.Create(b.ctx(), want); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("second Create: got error %v, want ErrConflict", err)
	}
}

// Both sides write by compare-and-swap on the whole object: an order and a commit that were decided on the same version exclude each other.
func TestShadowWritesAreSwaps(t *testing.T) {
	b := newBed(t)
	sh := b.shadow("swaps", 0)
	granted := b.order(sh, protocol.Orders{Grant: 1, Revision: "v2@sha256:22"})
	commit := protocol.Report{Known: true, Attempt: 1, Phase: protocol.PhaseCommitted, Revision: "v2@sha256:22"}

	b.order(granted, protocol.Orders{Grant: 1, Revision: "v2@sha256:22", Revoked: 1})
	if _, err := b.shadows.Report(b.ctx(), granted, with(granted, commit), time.Unix(1e9, 0)); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("commit over a version that was revoked since: got error %v, want ErrConflict", err)
	}
	sh, err := b.shadows.Get(b.ctx(), "swaps")
	b.must(err)
	again := b.order(sh, protocol.Orders{Grant: 2, Revoked: 1, Revision: "v3"})
	commit.Attempt, commit.Revision = 2, "v3"
	b.report(again, commit)
	if _, err := b.shadows.Order(b.ctx(), again, protocol.Orders{Grant: 2, Revoked: 2, Revision: "v3"}); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("revocation over a version that was committed since: got error %v, want ErrConflict", err)
	}
	got, err := b.shadows.Get(b.ctx(), "swaps")
	b.must(err)
	want := protocol.Shadow{Node: "swaps", UID: sh.Spec.NodeUID, Orders: protocol.Orders{Grant: 2, Revoked: 1, Revision: "v3"}, Report: commit}
	if sh := v1alpha1.ShadowOf(got); sh != want { // also: nothing is left of the digest of the revision before
		t.Errorf("got %+v, want %+v", sh, want)
	}
	ghost := got.DeepCopy()
	ghost.Name = "no-such-shadow"
	if _, err := b.shadows.Order(b.ctx(), ghost, protocol.Orders{Grant: 3, Revoked: 1, Revision: "v3"}); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("Order to a shadow that is gone: got error %v, want ErrConflict", err)
	}
}

// What changes nothing writes nothing; what the server does not know it has to refuse, not to drop.
func TestShadowWritesAreSmall(t *testing.T) {
	b := newBed(t)
	sh := b.shadow("small", 3)
	status := with(sh, protocol.Report{Known: true})
	status.Current, status.Message = &v1alpha1.RevisionRef{Name: "v1"}, "m"
	var err error
	one := b.calls.since(func() { sh, err = b.shadows.Report(b.ctx(), sh, status, time.Unix(1e9, 0)) })
	b.must(err)
	none := b.calls.since(func() {
		_, err = b.shadows.Report(b.ctx(), sh, *sh.Status.DeepCopy(), time.Unix(2e9, 0))
		b.must(err)
		_, err = b.shadows.Report(b.ctx(), sh, status, time.Unix(2e9, 0))
		b.must(err)
		_, err = b.shadows.Order(b.ctx(), sh, protocol.Orders{Revoked: 3})
		b.must(err)
	})
	if len(one) != 1 || len(none) != 0 {
		t.Errorf("got calls %q for what is new, and %q for what is not, want one and none", one, none)
	}
	_, err = must1(kube.NewLedgerStore(b.client, "small")).Store(b.ctx(), protocol.Ledger{}, "")
	b.must(err)
	if len(b.calls.lax) > 0 {
		t.Errorf("got writes %q, want each of them strict, and by the field manager of this package", b.calls.lax)
	}
	c := meta.FindStatusCondition(sh.Status.Conditions, v1alpha1.ConditionAtRest)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonUntouched || c.Message != "m" || c.LastTransitionTime.Unix() != 1e9 {
		t.Errorf("condition: got %+v, want True, Untouched, since the first report", c)
	}
}

// A field that only another version of this package knows is left as it is, by a write of either part.
func TestUnknownFieldsStay(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"nodeUID": "u", "later": "s", "revision": map[string]any{"name": "v1", "later": "r"}},
		"status": map[string]any{"known": true, "later": "t"},
	}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.NodeShadowKind))
	u.SetName("n")
	kinds := map[schema.GroupVersionResource]string{v1alpha1.NodeShadowsResource: "NodeShadowList"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, u)
	shadows := must1(kube.NewShadows(client))
	sh, err := shadows.Get(t.Context(), "n")
	if err == nil {
		sh, err = shadows.Order(t.Context(), sh, protocol.Orders{Grant: 1, Revision: "v2"})
	}
	if err == nil {
		_, err = shadows.Report(t.Context(), sh, with(sh, protocol.Report{Known: true, Attempt: 1}), time.Unix(1e9, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	u, err = client.Resource(v1alpha1.NodeShadowsResource).Get(t.Context(), "n", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for want, path := range map[string][]string{"s": {"spec", "later"}, "r": {"spec", "revision", "later"}, "t": {"status", "later"}, "v2": {"spec", "revision", "name"}} {
		if got, _, _ := unstructured.NestedString(u.Object, path...); got != want {
			t.Errorf("%v: got %q, want %q", path, got, want)
		}
	}
}

// R-RO-34: one call says which node runs what, as the agents have said it.
func TestOneListSaysWhatRuns(t *testing.T) {
	b := newBed(t)
	want := map[string]v1alpha1.RevisionRef{}
	for i := range 20 {
		name := fmt.Sprintf("list-%d", i)
		sh := b.shadow(name, 0)
		status := with(sh, protocol.Report{Known: true})
		status.Current = &v1alpha1.RevisionRef{Name: fmt.Sprintf("v%d", i%3), Digest: fmt.Sprintf("sha256:%d", i)}
		_, err := b.shadows.Report(b.ctx(), sh, status, time.Unix(1e9, 0))
		b.must(err)
		want[name] = *status.Current
	}
	var all []v1alpha1.NodeShadow
	var err error
	made := b.calls.since(func() { all, err = b.shadows.List(b.ctx()) })
	b.must(err)
	if len(made) != 1 {
		t.Errorf("got calls %q, want one", made)
	}
	for _, sh := range all {
		if w, ok := want[sh.Name]; ok && (sh.Status.Current == nil || *sh.Status.Current != w) {
			t.Errorf("node %q: got %+v, want %+v", sh.Name, sh.Status.Current, w)
		}
		delete(want, sh.Name)
	}
	if len(want) > 0 {
		t.Errorf("nodes that are not in the list: %v", want)
	}
}
