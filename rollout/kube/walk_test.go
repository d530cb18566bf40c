// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/rollout/internal/model"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A walker takes one node through the protocol, with its ledger and its shadow on the server.
type walker struct {
	*bed
	name    string
	world   model.World
	shadow  *v1alpha1.NodeShadow
	ledger  kube.LedgerStore
	version string
	taken   map[protocol.Event]int
}

// The rules of the server refuse nothing that the protocol allows, on random ways through all of its events. R-RO-14.
func TestServerAllowsTheProtocol(t *testing.T) {
	b := newBed(t)
	taken := map[protocol.Event]int{}
	var events []protocol.Event
	for _, tr := range model.AllTransitions() {
		if tr.Event != protocol.EventGone && !slices.Contains(events, tr.Event) {
			events = append(events, tr.Event)
		}
	}
	for seed := range uint64(8) {
		w := b.walker(fmt.Sprintf("walk-%d", seed), taken)
		r := rand.New(rand.NewPCG(seed, 1))
		for range 100 {
			w.step(r, seed, events)
		}
	}
	for _, e := range events {
		if taken[e] == 0 {
			t.Errorf("no walk has taken the event %s", e)
		}
	}
}

func (b *bed) walker(name string, taken map[protocol.Event]int) *walker {
	b.t.Helper()
	w := &walker{bed: b, name: name, ledger: must1(kube.NewLedgerStore(b.client, name)), taken: taken}
	var err error
	w.version, err = w.ledger.Store(b.ctx(), protocol.Ledger{}, "")
	b.must(err)
	w.world.Shadow = protocol.NewShadow(name, b.uid(name), protocol.Ledger{})
	w.shadow, err = b.shadows.Create(b.ctx(), w.world.Shadow)
	b.must(err)
	return w
}

// step takes one of the events that the protocol allows now: any, or the one that the walks have taken least.
func (w *walker) step(r *rand.Rand, seed uint64, events []protocol.Event) {
	w.t.Helper()
	revision := fmt.Sprintf("v%d@sha256:%d", r.IntN(3), r.IntN(2))
	least, seldom := protocol.Event(""), r.IntN(2) == 0
	var next model.World
	for _, i := range r.Perm(len(events)) {
		to, err := model.ApplyEvent(w.world, events[i], nil, revision)
		if err == nil && (least == "" || seldom && w.taken[events[i]] < w.taken[least]) {
			least, next = events[i], to
		}
	}
	if err := w.write(least, next); err != nil {
		w.t.Fatalf("seed %d: %s in state %s: got error %v, want it stored: %+v", seed, least, w.world.NodeState(), err, next)
	}
	w.taken[least]++
	w.world = next
	if got := v1alpha1.ShadowOf(w.shadow); got != next.Shadow {
		w.t.Fatalf("seed %d: after %s the shadow is %+v, want %+v", seed, least, got, next.Shadow)
	}
}

// write stores what an event has changed.
func (w *walker) write(event protocol.Event, next model.World) (err error) {
	switch {
	case event == model.EventRecreate:
		return w.recreate(next.Shadow)
	case !reflect.DeepEqual(next.Ledger, w.world.Ledger):
		w.version, err = w.ledger.Store(w.ctx(), next.Ledger, w.version)
	case next.Shadow.Orders != w.world.Shadow.Orders:
		w.shadow, err = w.shadows.Order(w.ctx(), w.shadow, next.Shadow.Orders)
	case next.Shadow.Report != w.world.Shadow.Report:
		w.shadow, err = w.shadows.Report(w.ctx(), w.shadow, with(w.shadow, next.Shadow.Report), time.Unix(1e9, 0))
	}
	return err
}

// recreate is a hand that removes the finalizer, and a controller that finds no shadow.
func (w *walker) recreate(sh protocol.Shadow) (err error) {
	client := w.client.Resource(v1alpha1.NodeShadowsResource)
	w.must(client.Delete(w.ctx(), w.name, metav1.DeleteOptions{}))
	_, err = client.Patch(w.ctx(), w.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.must(err)
	w.shadow, err = w.shadows.Create(w.ctx(), sh)
	return err
}
