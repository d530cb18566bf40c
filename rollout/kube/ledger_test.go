// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/rollouttest"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// R-RO-01: the ledger in an object of its own, on a real API server.
func TestLedgerStore(t *testing.T) {
	b := newBed(t)
	rollouttest.TestLedgers(t, func(_ *testing.T, domain string) rollout.LedgerStore {
		return must1(kube.NewLedgerStore(b.client, "suite-"+domain))
	})
}

// What others have put on the object stays, a deletion waits for the finalizer, and a Store after a Load is one call.
func TestLedgerStoreLeavesTheRestAlone(t *testing.T) {
	b := newBed(t)
	objects := b.client.Resource(v1alpha1.DisruptionLedgersResource)
	l := must1(kube.NewLedgerStore(b.client, "rest"))
	version, err := l.Store(b.ctx(), protocol.Ledger{Epoch: 1}, "")
	b.must(err)
	u, err := objects.Get(b.ctx(), "rest", metav1.GetOptions{})
	b.must(err)
	u.SetLabels(map[string]string{"a": "b"})
	_, err = objects.Update(b.ctx(), u, metav1.UpdateOptions{})
	b.must(err)
	if _, err := l.Store(b.ctx(), protocol.Ledger{Epoch: 2}, version); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("Store over the version before: got error %v, want ErrConflict", err)
	}
	_, version, err = l.Load(b.ctx())
	b.must(err)
	made := b.calls.since(func() { _, err = l.Store(b.ctx(), protocol.Ledger{Epoch: 2}, version) })
	b.must(err)
	if want := []string{"PUT /apis/belay.dev/v1alpha1/disruptionledgers/rest"}; !slices.Equal(made, want) {
		t.Errorf("Store after Load: got calls %q, want %q", made, want)
	}
	b.must(objects.Delete(b.ctx(), "rest", metav1.DeleteOptions{}))
	u, err = objects.Get(b.ctx(), "rest", metav1.GetOptions{})
	b.must(err)
	if u.GetLabels()["a"] != "b" || !slices.Equal(u.GetFinalizers(), []string{"rollout.belay.dev/ledger"}) {
		t.Errorf("got labels %v, finalizers %v, want them kept and the object there after its deletion", u.GetLabels(), u.GetFinalizers())
	}
}

// The server refuses what no controller of ours would write: R-RO-01.
func TestServerKeepsTheEpoch(t *testing.T) {
	b := newBed(t)
	l := must1(kube.NewLedgerStore(b.client, "epoch"))
	version, err := l.Store(b.ctx(), protocol.Ledger{Epoch: 7}, "")
	b.must(err)
	_, err = l.Store(b.ctx(), protocol.Ledger{Epoch: 6}, version)
	if err == nil || errors.Is(err, rollout.ErrConflict) || !strings.Contains(err.Error(), "epoch must not decrease") {
		t.Errorf("Store of a lower epoch: got error %v, want it refused as such, and no conflict", err)
	}
}

const slotA = "node=a uid=u attempt=1 rollout=r"

// slots is the spec of a ledger with these.
func slots(all ...any) map[string]any { return map[string]any{"epoch": int64(2), "slots": all} }

// What is not a ledger of this version is never taken for one.
func TestWhatIsNoLedgerObject(t *testing.T) {
	for _, c := range []struct {
		name string
		spec map[string]any
		want string
	}{
		{"unknown", map[string]any{"epoch": int64(1), "maxima": map[string]any{}}, `"maxima" is not known: want "closures"`},
		{"wrong", map[string]any{"epoch": "1"}, "epoch"},
		{"invalid", map[string]any{"epoch": int64(1), "fence": int64(2)}, "fence is 2, want 0 to 1"},
		{"no slot", slots("node-a"), "there is no such field"},
		{"unknown field", slots(slotA + " max=2"), "max: there is no such field"},
		{"an object", slots(map[string]any{"node": "a"}), "a slot is a line of text"},
		{"twice", slots(slotA, "node=a uid=v attempt=2 rollout=r"), "slots[1]: another slot has the same node"},
		{"not admitted", slots("node=a uid=u attempt=3 rollout=r"), "slots[0]: attempt is 3, want 1 to 2"},
		{"no such state", slots(slotA + " state=Fine"), `slots[0]: state is "Fine"`},
		{"no key", slots(slotA + " keys=a,,b"), "a key is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": c.spec}}
			u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.DisruptionLedgerKind))
			u.SetName("d")
			kinds := map[schema.GroupVersionResource]string{v1alpha1.DisruptionLedgersResource: "DisruptionLedgerList"}
			client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, u)
			l, _, err := must1(kube.NewLedgerStore(client, "d")).Load(t.Context())
			if !errors.Is(err, rollout.ErrUnreadable) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"d"`) {
				t.Errorf("Load: got %+v, %v, want ErrUnreadable with %q and the object's name", l, err, c.want)
			}
		})
	}
	if _, err := must1(kube.NewLedgerStore(noServer(), "d")).Store(t.Context(), protocol.Ledger{Epoch: -1}, ""); err == nil {
		t.Error("Store of epoch -1: got no error, want one before any call")
	}
}

func noServer() *fake.FakeDynamicClient { return fake.NewSimpleDynamicClient(runtime.NewScheme()) }
