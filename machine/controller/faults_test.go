// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/provider"
)

// in runs a test in a world of its own, with its own time.
func in(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newWorld(t)) })
}

func (w *world) live(key machine.Key) machine.Machine {
	w.t.Helper()
	m, err := w.store.Live(w.t.Context(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// secrets are some in memory.
type secrets map[string]map[string][]byte

func (s secrets) Secret(_ context.Context, key machine.Key) (map[string][]byte, error) {
	if data, ok := s[key.Name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

// R-MA-18: a Secret that is missing is named, the machine waits for it and nothing is made; the instance gets what is in it, which stands nowhere in the
// status.
func TestMissingSecret(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		all := secrets{}
		w.options.Secrets = all
		w.start()
		m := worker("a")
		m.Spec.Bootstrap = "join"
		w.store.Put(m)
		w.until(m.Key, "failed", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseFailed })
		if f := w.live(m.Key).Failure; f.Reason != machine.ReasonMissingSecret || !strings.Contains(f.Message, "\"join\"") {
			t.Errorf("failure %+v", f)
		}
		if n := len(w.cloud.Instances()); n != 0 {
			t.Errorf("%d instances were made", n)
		}
		all["join"] = map[string][]byte{"token": []byte("canary-of-the-secret")}
		at, _ := w.running(m.Key)
		if made, _ := w.cloud.Made(at.Token); string(made.Join.Bootstrap["token"]) != "canary-of-the-secret" {
			t.Errorf("the instance was started with %v", made.Join.Bootstrap)
		}
		delete(all, "join")
		w.store.Delete(m.Key)
		w.gone(m.Key) // an end needs no Secret
		w.clean()
	})
}

// R-MA-15: the API endpoint is a setting of the controller: new instances get it, and those that there are stay as they are.
func TestEndpointIsNoField(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.options.Endpoint = "https://one:6443"
		w.start()
		a := w.store.Put(worker("a"))
		first, _ := w.running(a.Key)
		w.options.Endpoint = "https://two:6443"
		w.start()
		b := w.store.Put(worker("b"))
		second, _ := w.running(b.Key)
		w.pass(a.Key)
		for token, want := range map[string]string{first.Token: "https://one:6443", second.Token: "https://two:6443"} {
			if made, _ := w.cloud.Made(token); made.Join.Endpoint != want {
				t.Errorf("R-MA-15: the instance %q joins %q, want %q", token, made.Join.Endpoint, want)
			}
		}
		if at := w.live(a.Key); at.Generation != first.Generation || at.Incarnation != 1 {
			t.Errorf("R-MA-15: the first machine was touched: %+v", at)
		}
	})
}

// An instance that somebody has deleted is reported and not made again under its token; once its machine is deleted, its Node goes too.
func TestInstanceLost(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.store.Put(worker("a"))
		at, _ := w.running(m.Key)
		w.cloud.Lose(at.Token)
		<-time.After(time.Minute)
		changed, err := w.ctl.Survey(t.Context())
		if err != nil || !slices.Contains(changed, m.Key) {
			t.Fatalf("the survey says %v, %v", changed, err)
		}
		w.until(m.Key, "lost", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseFailed })
		if f := w.live(m.Key).Failure; f.Reason != machine.ReasonInstanceLost {
			t.Errorf("failure %+v", f)
		}
		for range 20 {
			<-time.After(max(w.pass(m.Key), time.Minute))
		}
		if n := len(w.cloud.Instances()); n != 0 {
			t.Errorf("%d instances were made", n)
		}
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
	})
}

// Two machines with one ProviderID: neither is touched, and each says so.
func TestTwinsAreFrozen(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.store.Put(worker("a"))
		at, _ := w.running(a.Key)
		b := worker("b")
		b.Spec.ProviderID = at.Spec.ProviderID
		w.store.Put(b)
		w.store.Delete(a.Key)
		before := len(w.trace)
		for range 10 {
			<-time.After(max(w.pass(a.Key), w.pass(b.Key), time.Minute))
		}
		for _, call := range w.trace[before:] {
			if call != "PutStatus" {
				t.Errorf("%s was called", call)
			}
		}
		for _, key := range []machine.Key{a.Key, b.Key} {
			if f := w.live(key).Failure; f == nil || f.Reason != machine.ReasonDuplicateProviderID {
				t.Errorf("machine %q: failure %+v", key, f)
			}
		}
	})
}

// R-MA-18: with the workload API down the instance of a machine is deleted all the same, after its time; what was passed is written down.
func TestWorkloadAPIDownDuringDelete(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		w.nodes.Away(true)
		w.store.Delete(m.Key)
		begun := time.Now()
		w.until(m.Key, "past the drain", func(m machine.Machine, there bool) bool { return !there || m.Release != nil && m.Release.Drained })
		if r := w.live(m.Key).Release; time.Since(begun) < machine.DefaultNodeTimeout || len(r.Overrides) == 0 || !strings.Contains(r.Overrides[0], "drain") {
			t.Errorf("after %v the overrides are %v", time.Since(begun), r.Overrides)
		}
		w.released(m.Key)
		w.nodes.Away(false)
		w.gone(m.Key)
		w.clean()
	})
}

// R-MA-19 and R-MA-22: a worker's end has its order: gates, cordon and drain, hooks, stop, Node, release. A drain that is blocked holds it up, and says so, until
// its time is over or somebody says not to wait.
func TestOrderOfAnEnd(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := worker("a")
		m.Spec.Deletion.Hooks = []machine.Hook{{Name: "backup", Owner: "ops", Phase: machine.BeforeStop}}
		w.store.Put(m)
		w.running(m.Key)
		w.nodes.Stick("pod default/db: its budget allows nothing")
		begun := len(w.trace)
		w.store.Delete(m.Key)
		w.until(m.Key, "draining", func(m machine.Machine, _ bool) bool {
			return strings.Contains(m.Step.Blocker, "its budget allows nothing")
		})
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Annotations = map[string]string{machine.OverrideAnnotation: "drain"} })
		w.until(m.Key, "at its hook", func(m machine.Machine, _ bool) bool { return strings.Contains(m.Step.Blocker, "\"backup\" of ops") })
		if slices.Contains(w.trace, "Stop") {
			t.Error("R-MA-22: it was stopped before its hook was taken away")
		}
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Deletion.Hooks = nil })
		w.gone(m.Key)
		w.clean()
		var order []string
		for _, call := range w.trace[begun:] {
			if call != "PutStatus" && (len(order) == 0 || order[len(order)-1] != call) {
				order = append(order, call)
			}
		}
		want := "TakeSlot Cordon Drain"
		if got := strings.Join(order, " "); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "Stop RemoveNode Delete FreeSlot SetFinalizer") {
			t.Errorf("R-MA-22: the order was %s", got)
		}
	})
}

// R-MA-24 and R-MA-07: a machine that is decommissioned is empty, off, and keeps its disks; when that is taken back, the same disks come up as another
// incarnation. To delete it by Destroy leaves nothing.
func TestDecommissionAndBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := worker("a")
		m.Spec.Deletion.Disks = provider.Retain
		w.store.Put(m)
		first, _ := w.running(m.Key)
		disk := first.Instance.Disks[0].ID
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Decommission = true })
		w.until(m.Key, "retired", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseRetired })
		if at := w.live(m.Key); len(at.Retained) != 1 || at.Retained[0].Disks[0].ID != disk {
			t.Errorf("R-MA-24: retained is %+v", at.Retained)
		}
		if nodes := w.nodes.All(); len(nodes) != 0 {
			t.Errorf("there are Nodes: %v", nodes)
		}
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Decommission = false })
		second, _ := w.running(m.Key)
		if second.Incarnation != 2 || second.Instance.Disks[0].ID != disk || len(second.Retained) != 0 {
			t.Errorf("R-MA-24: incarnation %d with the disks %v, retained %v", second.Incarnation, second.Instance.Disks, second.Retained)
		}
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Deletion.Disks = provider.Destroy })
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
	})
}

// starter lets nothing in until it is told.
type starter struct{ why string }

func (s *starter) Started(context.Context, machine.Machine, machine.Node) string { return s.why }

// R-MA-21: a new machine takes part only when the checks of its roles pass.
func TestRolesAreChecked(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s := &starter{why: "the endpoint does not answer"}
		w.options.Starter = s
		w.start()
		m := w.store.Put(worker("a"))
		w.until(m.Key, "starting", func(m machine.Machine, _ bool) bool { return m.Step.Name == machine.StepStarting })
		if at := w.live(m.Key); at.Step.Blocker != s.why || w.nodes.Writes()["StartNode"] != 0 {
			t.Errorf("R-MA-21: it waits for %q; the Node was started %d times", at.Step.Blocker, w.nodes.Writes()["StartNode"])
		}
		s.why = ""
		w.running(m.Key)
	})
}

// A silent starter answers when nobody listens any more.
type silent struct{}

func (silent) Started(ctx context.Context, _ machine.Machine, _ machine.Node) string {
	<-ctx.Done()
	return ""
}

// R-MA-21: checks of roles that do not answer end with their call's deadline, and nothing is believed of what they say then; the machine says what it waits for.
func TestSilentStarterIsNotWaitedFor(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.options.Starter = silent{}
		w.start()
		m := w.store.Put(worker("a"))
		w.until(m.Key, "failed", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseFailed })
		const why = `the checks of the roles ["worker"] have not ended within 30s`
		at := w.live(m.Key)
		if at.Failure.Reason != machine.ReasonStartTimeout || !strings.Contains(at.Failure.Message, why) || at.Step.Blocker != why || w.nodes.Writes()["StartNode"] != 0 {
			t.Errorf("R-MA-21: failure %+v at %+v; calls %v", at.Failure, at.Step, w.nodes.Writes())
		}
		w.options.Starter = nil
		w.start()
		w.running(m.Key)
	})
}

// R-MA-16: each generation of the spec of a machine without an instance, which nobody is about to make, is stored as observed.
func TestRetiredMachineObservesEdits(t *testing.T) {
	in(t, func(_ *testing.T, w *world) {
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Decommission = true })
		w.until(m.Key, "retired", func(m machine.Machine, _ bool) bool { return m.Phase == machine.PhaseRetired })
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" })
		w.until(m.Key, "observed", func(m machine.Machine, _ bool) bool {
			return m.Observed == m.Generation && m.Phase == machine.PhaseRetired
		})
	})
}

// skew refuses a version.
type skew string

func (s skew) Skew(_ context.Context, kubelet string) string { return machine.Skew(string(s), kubelet) }

// R-MA-13: a kubelet is never newer than its control plane: nothing is made or touched, and the reason is there.
func TestSkewIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.options.ControlPlane = skew("v1.36.3")
		w.start()
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		before := len(w.trace)
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.37.0" })
		w.until(m.Key, "refused", func(m machine.Machine, _ bool) bool {
			return m.Failure != nil && m.Failure.Reason == machine.ReasonVersionSkew
		})
		for _, call := range w.trace[before:] {
			if call != "PutStatus" {
				t.Errorf("R-MA-13: %s was called", call)
			}
		}
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" })
		if at, _ := w.running(m.Key); at.Failure != nil {
			t.Errorf("failure %+v", at.Failure)
		}
	})
}

// An orphan is reported; it is ended only by a policy, after two surveys and its time, and its disks are kept.
func TestOrphans(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		r := provider.CreateRequest{Token: provider.Token(clusterID, "nobody", 1), Owner: provider.Owner{Cluster: clusterID, Name: "nobody", UID: "nobody", Incarnation: 1}}
		r.Desired.Config = []byte(`{"image":"a"}`)
		r.Digest = r.Desired.Digest()
		if _, err := w.cloud.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		survey := func() {
			if _, err := w.ctl.Survey(t.Context()); err != nil {
				t.Error(err)
			}
			<-time.After(time.Hour)
		}
		for range 5 {
			survey()
		}
		if o := w.ctl.Orphans(); len(o) != 1 || o[0].Sightings != 5 || !w.cloud.Instances()[0].State.Alive() {
			t.Errorf("orphans %+v, instances %+v", o, w.cloud.Instances())
		}
		w.options.Orphans = controller.OrphanPolicy{Retain: true}
		w.start()
		survey()
		if !w.cloud.Instances()[0].State.Alive() {
			t.Error("it was ended at its first sighting")
		}
		for range 6 {
			survey()
		}
		if is := w.cloud.Instances(); len(is) != 1 || is[0].State != provider.Retained {
			t.Errorf("the instances are %+v", is)
		}
	})
}
