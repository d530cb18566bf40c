// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/provider"
)

// gate blocks while the control plane would lose its quorum: it allows an end once, and no more while that goes on.
type gate struct{ asked, left, before int }

func (g *gate) Check(context.Context, machine.Machine) (string, error) {
	if g.asked++; g.left > 0 {
		return "2 of 2 members are needed", nil
	}
	return "", nil
}

func (g *gate) Leave(context.Context, machine.Machine) (bool, string, error) {
	if g.left++; g.left == 1 {
		g.before = g.asked
		panic(killed{"Leave"}) // after its effect
	}
	return true, "", nil
}

// R-MA-23: a control-plane machine leaves its services before it is switched off. Its gates are not asked again after that, also by another controller that
// comes in between: they would refuse what is half done.
func TestGatesAreNotAskedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		g := &gate{}
		w.options.Gates, w.options.Members = []controller.Gate{g}, g
		w.start()
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		w.store.Delete(m.Key)
		w.until(m.Key, "leaving", func(machine.Machine, bool) bool { return g.left == 1 })
		if slices.Contains(w.trace, "Stop") {
			t.Error("R-MA-23: it was switched off before it had left")
		}
		w.gone(m.Key) // by another controller, that knows only what is stored
		w.clean()
		if g.asked != g.before {
			t.Errorf("R-MA-23: the gates were asked %d times after the machine had left", g.asked-g.before)
		}
	})
}

// R-MA-03: an update is over when the Node reports what was asked for, not when the provider says so.
func TestUpdateIsVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		report := w.nodes.Version
		w.nodes.Version = func(provider.Instance) provider.Versions { return provider.Versions{Kubelet: "v1.36.1"} }
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" })
		w.until(m.Key, "verifying", func(m machine.Machine, _ bool) bool { return m.Step.Name == machine.StepVerifying })
		at, _ := w.store.Live(t.Context(), m.Key)
		if want := "reports the kubelet \"v1.36.1\", \"v1.36.2\" is wanted"; !strings.Contains(at.Step.Blocker, want) {
			t.Errorf("it waits for %q", at.Step.Blocker)
		}
		w.until(m.Key, "failed", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseFailed })
		if at, _ = w.store.Live(t.Context(), m.Key); at.Failure.Reason != machine.ReasonUpdateTimeout || len(w.budget.held) != 1 {
			t.Errorf("failure %+v, slots %v: it keeps its slot until somebody has looked", at.Failure, w.budget.held)
		}
		w.nodes.Version = report
		if at, _ := w.running(m.Key); at.Versions.Kubelet != "v1.36.2" || at.Failure != nil {
			t.Errorf("it runs %q, failure %+v", at.Versions.Kubelet, at.Failure)
		}
	})
}

// R-MA-28: what a user has said counts, though the cache is behind: nothing is asked of anybody for a machine that is paused. Its status follows, and it
// is not deleted.
func TestPauseIsSeenBehindACache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" })
		w.store.Freeze()
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Paused = true })
		w.store.Delete(m.Key)
		before := len(w.trace)
		for range 20 {
			<-time.After(max(w.pass(m.Key), time.Second))
		}
		w.store.Thaw()
		for range 20 {
			<-time.After(max(w.pass(m.Key), time.Second))
		}
		for _, call := range w.trace[before:] {
			if call != "PutStatus" {
				t.Errorf("%s was called for a paused machine", call)
			}
		}
		if at, _ := w.store.Live(t.Context(), m.Key); !strings.Contains(at.Step.Blocker, "paused") {
			t.Errorf("its status says %q", at.Step.Blocker)
		}
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Paused = false })
		w.gone(m.Key)
		w.clean()
	})
}

// R-MA-09: a provider of two methods gives the whole life of a machine: made, replaced for every change, deleted; killed around each call, nothing is made
// twice or left.
func TestTwoMethodsAreEnough(t *testing.T) {
	for at := range 80 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.options.Provider = provider.Minimal(onlyTwo{cloud{w.cloud, w}})
			w.start()
			w.kill = at
			m := w.store.Put(worker("a"))
			w.running(m.Key)
			w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" })
			if at, _ := w.running(m.Key); at.Incarnation != 2 {
				t.Errorf("incarnation %d", at.Incarnation)
			}
			w.store.Delete(m.Key)
			w.gone(m.Key)
			w.clean()
		})
		if t.Failed() {
			t.Fatalf("killed at half-call %d", at)
		}
	}
}

// onlyTwo hides what else a provider can.
type onlyTwo struct{ c cloud }

func (p onlyTwo) Create(ctx context.Context, r provider.CreateRequest) (provider.Instance, error) {
	return p.c.Create(ctx, r)
}

func (p onlyTwo) Delete(ctx context.Context, r provider.DeleteRequest) (provider.Progress, error) {
	return p.c.Delete(ctx, r)
}

// A token that is used up makes nothing: the machine goes on with another one.
func TestUsedUpToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := worker("a")
		used := provider.Ref{Token: provider.Token(clusterID, m.UID, 1)}
		if _, err := w.cloud.Delete(t.Context(), provider.DeleteRequest{Ref: used, Cluster: clusterID, Mode: provider.Destroy}); err != nil {
			t.Fatal(err)
		}
		w.store.Put(m)
		if at, _ := w.running(m.Key); at.Incarnation != 2 {
			t.Errorf("incarnation %d", at.Incarnation)
		}
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
	})
}

// A token was used for a config that is not wanted any more, and the provider can't say so but by a conflict: that token is ended, and another one used.
func TestConflictOfTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.options.Provider = provider.Minimal(onlyTwo{cloud{w.cloud, w}})
		w.start()
		w.kill = 5 // after the effect of Create, before anything is learnt of it
		m := w.store.Put(worker("a"))
		w.until(m.Key, "killed", func(machine.Machine, bool) bool { return w.kills == 1 })
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"b"}`) })
		if at, _ := w.running(m.Key); at.Incarnation != 2 {
			t.Errorf("incarnation %d", at.Incarnation)
		}
		if n := len(w.cloud.Instances()); n != 1 {
			t.Errorf("%d instances", n)
		}
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
	})
}
