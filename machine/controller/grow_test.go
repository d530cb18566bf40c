// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/provider"
)

// starters lets in whom it has nothing against, by the names of machines.
type starters map[string]string

func (s starters) Started(_ context.Context, m machine.Machine, _ machine.Node) string {
	return s[m.Name]
}

// roster is the store of a control plane, with its members by the names of machines: all of them are healthy, for all that it knows.
type roster map[string]bool

func (r roster) List(_ context.Context, machines []machine.Machine) (all []machine.Member, err error) {
	for _, m := range machines {
		if r[m.Name] {
			all = append(all, machine.Member{Name: m.Name, Machine: m.Key, Healthy: true})
		}
	}
	return all, nil
}

func (r roster) Leave(_ context.Context, m machine.Machine) (bool, string, error) {
	delete(r, m.Name)
	return true, "", nil
}

// R-MA-21: the Node of a new machine keeps the taint that it has registered with until the checks of the machine's roles pass, also through another controller, and also
// when their time is over, which makes the machine Failed; then it loses it. That it is ready changes nothing about that.
func TestNodeIsTaintedUntilItsRolesWork(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s := starters{"c0": "the endpoint does not answer"}
		w.options.Starter = s
		w.start()
		m := w.store.Put(master("c0"))
		w.until(m.Key, "starting", func(m machine.Machine, _ bool) bool { return m.Step.Name == machine.StepStarting })
		for _, phase := range []machine.Phase{machine.PhaseJoining, machine.PhaseJoining, machine.PhaseFailed, machine.PhaseFailed} {
			w.goOn(m.Key, 6*time.Minute)
			w.start()
			at, nodes := w.live(m.Key), w.nodes.All()
			if len(nodes) != 1 || !nodes[0].Ready || !nodes[0].Uninitialized || w.nodes.Writes()["StartNode"] != 0 {
				t.Fatalf("R-MA-21: its roles do not work, and its Nodes are %+v; calls %v", nodes, w.nodes.Writes())
			}
			if at.Phase != phase || at.Step.Blocker != s["c0"] || phase == machine.PhaseFailed && at.Failure.Reason != machine.ReasonStartTimeout {
				t.Fatalf("R-MA-21: it is %s at %+v, failure %+v, want %s", at.Phase, at.Step, at.Failure, phase)
			}
		}
		delete(s, "c0")
		w.running(m.Key)
		if n := w.nodes.All()[0]; n.Uninitialized || w.nodes.Writes()["StartNode"] != 1 {
			t.Errorf("R-MA-21: its roles work, and its Node is %+v", n)
		}
	})
}

// entered has a machine entered for its end, and the gates refuse that: nothing is done to it, and it is taken back.
func (w *world) entered(t *testing.T, key machine.Key, why string) {
	t.Helper()
	begun := len(w.trace)
	w.store.Edit(key, func(m *machine.Machine) { m.Spec.Decommission = true })
	w.goOn(key, time.Hour)
	at := w.live(key)
	if at.Step.Name != machine.StepGates || at.Release == nil || at.Release.Gated || !strings.Contains(at.Step.Blocker, why) {
		t.Errorf("R-MA-20: it is %s at %+v, release %+v; want it to be refused by %q", at.Phase, at.Step, at.Release, why)
	}
	if i := slices.IndexFunc(w.trace[begun:], func(call string) bool { return !reads[call] && call != "PutStatus" }); i >= 0 {
		t.Errorf("R-MA-20: it was refused, and %s was called", w.trace[begun:][i])
	}
	w.store.Edit(key, func(m *machine.Machine) { m.Spec.Decommission = false })
	if at, _ := w.running(key); at.Incarnation != 1 {
		t.Errorf("R-MA-20: it was taken back, and has incarnation %d", at.Incarnation)
	}
}

// R-MA-20 and R-MA-21: a control plane of one machine grows to three, and then the first machine may end. Before, the gates refuse that: while it is the only one, and
// while those that came do not work, though their members say that they are healthy.
func TestControlPlaneGrowsFromOneToThree(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s, r := starters{"c1": "the endpoint does not answer", "c2": "the endpoint does not answer"}, roster{}
		w.options.Starter, w.options.Members = s, r
		w.options.Gates = []controller.Gate{controller.EndGate{Fleet: controller.Fleet{Machines: w.store, Nodes: w.nodes, Members: r}}}
		w.start()
		first := w.store.Put(master("c0"))
		w.running(first.Key)
		r["c0"] = true
		w.entered(t, first.Key, "no machine of the control plane would remain")
		var others []machine.Key
		for _, name := range []string{"c1", "c2"} {
			key := w.store.Put(master(name)).Key
			w.until(key, "starting", func(m machine.Machine, _ bool) bool { return m.Step.Name == machine.StepStarting })
			r[name], others = true, append(others, key)
		}
		w.entered(t, first.Key, "of the 2 machines of the control plane that would remain, none is running")
		delete(s, "c1")
		w.running(others[0])
		w.entered(t, first.Key, `member "c2" is on a machine that has not started yet`)
		delete(s, "c2")
		w.running(others[1])
		w.store.Edit(first.Key, func(m *machine.Machine) { m.Spec.Decommission = true })
		w.until(first.Key, "retired", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseRetired })
		if len(r) != 2 || r["c0"] {
			t.Errorf("R-MA-20: the members are %v", r)
		}
		for _, key := range others {
			if at, _ := w.running(key); at.Incarnation != 1 {
				t.Errorf("R-MA-20: machine %q has incarnation %d", key, at.Incarnation)
			}
		}
	})
}

// sameID gives every instance the ProviderID of the first one.
type sameID struct {
	cloud
	id *string
}

func (p sameID) as(i provider.Instance, err error) (provider.Instance, error) {
	if err == nil && *p.id == "" {
		*p.id = i.ProviderID
	}
	i.ProviderID = *p.id
	return i, err
}

func (p sameID) Create(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
	return p.as(p.cloud.Create(ctx, r))
}

func (p sameID) Get(ctx context.Context, r provider.Ref) (provider.Instance, error) {
	return p.as(p.cloud.Get(ctx, r))
}

// A provider that gives two tokens the same ProviderID: as soon as that is known neither machine is touched any more, whatever becomes of them, and each says so.
// When somebody has sorted it out, the one that is left goes on.
func TestProviderIDHandedOutTwice(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.options.Provider = sameID{cloud{w.cloud, w}, new(string)}
		w.options.Orphans = controller.OrphanPolicy{Retain: true}
		w.start()
		a, b := w.store.Put(worker("a")).Key, w.store.Put(worker("b")).Key
		w.running(a)
		frozen := func(m machine.Machine, _ bool) bool {
			return m.Failure != nil && m.Failure.Reason == machine.ReasonDuplicateProviderID && m.Phase == machine.PhaseFailed
		}
		w.until(b, "frozen", frozen)
		w.until(a, "frozen", frozen)
		if at := w.live(b); at.Spec.ProviderID != "" {
			t.Errorf("the second machine has taken the ProviderID %q, which is another one's", at.Spec.ProviderID)
		}
		begun, instances := len(w.trace), w.cloud.Instances()
		w.image(a, "b")
		w.store.Delete(b)
		for range 10 {
			w.goOn(a, time.Hour)
			w.goOn(b, time.Hour)
			survey(w)
		}
		for _, call := range w.trace[begun:] {
			if call != "PutStatus" && !reads[call] {
				t.Errorf("%s was called for machines that nobody can tell apart", call)
			}
		}
		if !slices.EqualFunc(instances, w.cloud.Instances(), func(x, y provider.Instance) bool { return x.Token == y.Token && y.State.Alive() }) {
			t.Errorf("the instances were %+v and are %+v", instances, w.cloud.Instances())
		}
		if _, err := w.store.SetFinalizer(t.Context(), w.live(b), false); err != nil { // as the runbook says
			t.Fatal(err)
		}
		w.gone(b)
		if at, _ := w.running(a); at.Failure != nil || at.Incarnation != 1 {
			t.Errorf("it is alone again, and has incarnation %d, failure %+v", at.Incarnation, at.Failure)
		}
	})
}
