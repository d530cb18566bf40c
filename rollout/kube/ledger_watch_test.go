// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
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

// What was seen of the ledger is what this process has written, at once, and what others have, soon; it costs no call. Where nobody watches, or the
// ledger is gone, nothing was seen.
func TestLedgerIsSeen(t *testing.T) {
	b := newBed(t)
	mine, theirs := must1(kube.NewLedgerStore(b.client, "seen")), must1(kube.NewLedgerStore(b.client, "seen"))
	version, err := mine.Store(b.ctx(), protocol.Ledger{Epoch: 1}, "")
	b.must(err)
	if _, _, ok := mine.Seen(); ok {
		t.Error("a ledger was seen that nobody watches")
	}
	changed := make(chan struct{}, 1000)
	go func() { _ = mine.Run(t.Context(), func() { changed <- struct{}{} }) }()
	seen := func(epoch protocol.Attempt) error {
		l, v, ok := mine.Seen()
		if version = v; !ok || l.Epoch != epoch {
			return fmt.Errorf("seen: %+v %t, want epoch %d", l, ok, epoch)
		}
		return nil
	}
	b.eventually("the watch has begun", b.now(func() error { return seen(1) }))
	version, err = mine.Store(b.ctx(), protocol.Ledger{Epoch: 2}, version)
	b.must(err)
	made := b.calls.since(func() {
		if err := seen(2); err != nil {
			t.Error("after its own write: ", err)
		}
	})
	if len(made) > 0 {
		t.Errorf("Seen has made the calls %q", made)
	}
	_, err = theirs.Store(b.ctx(), protocol.Ledger{Epoch: 3}, version)
	b.must(err)
	if _, err := mine.Store(b.ctx(), protocol.Ledger{Epoch: 4}, version); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("Store over what was seen before: got error %v, want ErrConflict", err)
	}
	b.eventually("what others have written", b.now(func() error { return seen(3) }))
	<-changed
	objects := b.client.Resource(v1alpha1.DisruptionLedgersResource)
	_, err = objects.Patch(b.ctx(), "seen", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	b.must(err)
	b.must(objects.Delete(b.ctx(), "seen", metav1.DeleteOptions{}))
	b.eventually("the end of the ledger", b.now(func() error {
		if l, _, ok := mine.Seen(); ok {
			return fmt.Errorf("seen: %+v", l)
		}
		return nil
	}))
	if _, _, err := mine.Load(b.ctx()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of the deleted ledger: got error %v, want fs.ErrNotExist", err)
	}
}

// An agent that is told what its watch shows reads without a call. What it has written counts at once, and after a conflict it asks the server.
func TestAgentReadsWhatItSees(t *testing.T) {
	b := newBed(t)
	sh := b.shadow("sees", 1)
	own := must1(kube.NewOwnShadowCache(b.client, "sees"))
	b.shadow("sees-other", 1)
	go func() { _ = own.Run(t.Context(), func() {}) }()
	b.eventually("the cache", b.now(func() error {
		if !own.Synced() {
			return errors.New("is empty")
		}
		return nil
	}))
	if all := own.List(); len(all) != 1 || all[0].Name != "sees" {
		t.Errorf("the cache of the own shadow has %d, want that one alone", len(all))
	}
	a := must1(kube.NewAgentShadow(b.shadows, "sees", nil))
	a.See(sh)
	if made := b.calls.since(func() { _, _, err := a.Read(b.ctx()); b.must(err) }); len(made) != 1 {
		t.Errorf("the first Read has made the calls %q, want one: a watch may begin with what is old", made)
	}
	read := func() (version string) {
		t.Helper()
		_, version, err := a.Read(b.ctx())
		b.must(err)
		return version
	}
	if made := b.calls.since(func() { read() }); len(made) > 0 {
		t.Errorf("Read of what was seen has made the calls %q", made)
	}
	said, version, err := a.Read(b.ctx())
	b.must(err)
	said.Status.Reason = "First"
	b.must(a.Store(b.ctx(), said.Status, version))
	a.See(sh) // the watch is late
	if got := read(); got == version {
		t.Errorf("Read after a Store: version %q, which is the one before", got)
	}
	version = read()
	now, err := b.shadows.Get(b.ctx(), "sees")
	b.must(err)
	now = b.order(now, protocol.Orders{Revoked: 1, Stage: "v2"})
	said.Status.Reason = "Second"
	if err := a.Store(b.ctx(), said.Status, version); err == nil {
		t.Error("Store over a version that was ordered since: got no error")
	}
	made := b.calls.since(func() { version = read() })
	if len(made) != 1 || !strings.HasPrefix(made[0], "GET ") || version != now.ResourceVersion {
		t.Errorf("Read after a conflict: version %q by the calls %q, want %q by one GET", version, made, now.ResourceVersion)
	}
	a.See(nil)
	if made := b.calls.since(func() { read() }); len(made) != 1 {
		t.Errorf("Read of a shadow that seems to be gone has made the calls %q, want one", made)
	}
}
