// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/provider"
)

// planner answers plans itself, as long as it is told to.
type planner struct {
	cloud
	plan  *provider.Plan
	asked *int
}

func (p planner) Plan(ctx context.Context, r provider.UpdateRequest) (provider.Plan, error) {
	if *p.asked++; p.plan.Method != "" {
		return *p.plan, nil
	}
	return p.cloud.Plan(ctx, r)
}

// R-MA-06: a change that the provider refuses is asked for once; the annotation for another try with a new value has it asked for again, once for each value.
func TestRefusedChangeIsAskedForAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := planner{cloud{w.cloud, w}, &provider.Plan{Method: provider.Unsupported, Reason: "not today"}, new(int)}
		w.options.Provider = p
		w.start()
		m := w.store.Put(worker("a"))
		w.running(m.Key)
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" })
		refused := func(want int) {
			t.Helper()
			for range 10 {
				<-time.After(max(w.pass(m.Key), time.Minute))
			}
			if f := w.live(m.Key).Failure; f == nil || f.Reason != machine.ReasonUnsupportedChange || *p.asked != want {
				t.Errorf("R-MA-06: failure %+v, %d plans, want %d", f, *p.asked, want)
			}
		}
		refused(1)
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Annotations = map[string]string{machine.RetryAnnotation: "1"} })
		refused(2)
		w.start()
		refused(2)
		p.plan.Method = ""
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Annotations = map[string]string{machine.RetryAnnotation: "2"} })
		if at, _ := w.running(m.Key); at.Failure != nil || at.Versions.Kubelet != "v1.36.2" {
			t.Errorf("R-MA-06: failure %+v, version %q", at.Failure, at.Versions.Kubelet)
		}
	})
}

// blind is a provider that lists and, while it is told so, does not answer for one instance.
type blind struct {
	cloud
	away *bool
}

func (b blind) Get(ctx context.Context, r provider.Ref) (provider.Instance, error) {
	if *b.away {
		return provider.Instance{}, provider.Errorf(provider.Unavailable, "nobody answers")
	}
	return b.cloud.Get(ctx, r)
}

// R-MA-02: that an instance is lost is not forgotten because the provider does not answer for a while, by a new controller either.
func TestLostStaysLost(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := blind{cloud{w.cloud, w}, new(bool)}
		w.options.Provider = p
		w.start()
		m := w.store.Put(worker("a"))
		at, _ := w.running(m.Key)
		w.cloud.Lose(at.Token)
		survey := func() {
			<-time.After(time.Minute)
			if _, err := w.ctl.Survey(t.Context()); err != nil {
				t.Error(err)
			}
			w.pass(m.Key)
		}
		for range 3 {
			survey()
		}
		if f := w.live(m.Key).Failure; f == nil || f.Reason != machine.ReasonInstanceLost {
			t.Fatalf("failure %+v", f)
		}
		*p.away = true
		for range 10 {
			survey()
		}
		w.start()
		for range 3 {
			survey()
		}
		if at := w.live(m.Key); at.Failure == nil || at.Failure.Reason != machine.ReasonInstanceLost || at.Phase != machine.PhaseFailed {
			t.Errorf("phase %s, failure %+v", at.Phase, at.Failure)
		}
	})
}

// R-MA-24: what another machine has taken over is not destroyed when the time of its first owner is over, though no cache shows that machine yet; nor is
// anything while the store does not answer.
func TestExpiryAsksForAllMachines(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := worker("a")
		m.Spec.Deletion.Disks, m.Spec.Deletion.RetainFor = provider.Retain, time.Hour
		w.store.Put(m)
		first, _ := w.running(m.Key)
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.options.Orphans = controller.OrphanPolicy{Expire: true}
		w.start()
		w.store.Freeze()
		heir := worker("b")
		heir.Spec.Adopt = first.Token
		w.store.Put(heir)
		for range 5 {
			<-time.After(time.Hour)
			if _, err := w.ctl.Survey(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if left := w.cloud.Instances(); len(left) != 1 || left[0].Token != first.Token {
			t.Fatalf("R-MA-24: the disk that machine b names was destroyed: %+v", left)
		}
		w.store.Thaw()
		second, _ := w.running(heir.Key)
		if second.Instance.Disks[0].ID != first.Instance.Disks[0].ID {
			t.Errorf("R-MA-24: the disks are %v, want %v", second.Instance.Disks, first.Instance.Disks)
		}
	})
}

// refuser refuses every token.
type refuser struct {
	cloud
	asked *int
}

func (r refuser) Create(context.Context, provider.CreateRequest) (provider.Instance, error) {
	*r.asked++
	return provider.Instance{}, provider.Errorf(provider.Conflict, "the token is used up")
}

// R-MA-30: a provider that refuses one token after the other is asked less and less often, until somebody says to try again.
func TestRefusedTokensBackOff(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := refuser{cloud{w.cloud, w}, new(int)}
		w.options.Provider = p
		w.start()
		m := w.store.Put(worker("a"))
		for begun := time.Now(); time.Since(begun) < 2*time.Hour; {
			<-time.After(min(max(w.pass(m.Key), time.Second), time.Minute))
		}
		if *p.asked < 10 || *p.asked > 20 {
			t.Errorf("R-MA-30: it was asked %d times in two hours, want 10 to 20", *p.asked)
		}
		before := *p.asked
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Annotations = map[string]string{machine.RetryAnnotation: "1"} })
		<-time.After(time.Second)
		w.pass(m.Key)
		if *p.asked != before+1 {
			t.Errorf("after the annotation it was asked %d times more, want 1", *p.asked-before)
		}
		w.options.Provider = cloud{w.cloud, w}
		w.start()
		w.running(m.Key)
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
	})
}

// R-MA-08: a config that the provider refuses shows before there is any effect, of a new machine and of a change; it is not asked for again and again, and the
// machine goes on once the config is right, or is as it was.
func TestInvalidConfigHasNoEffect(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := worker("a")
		m.Spec.Config = []byte(`{"imagine":"a"}`)
		w.store.Put(m)
		refused := func() {
			t.Helper()
			begun := len(w.trace)
			for range 5 {
				<-time.After(max(w.pass(m.Key), time.Second))
			}
			if f := w.live(m.Key).Failure; f == nil || f.Reason != string(provider.InvalidConfig) {
				t.Errorf("R-MA-08: failure %+v", f)
			}
			for _, call := range w.trace[begun:] {
				if call != "PutStatus" && call != "FreeSlot" { // that is given back whether it was taken or not
					t.Errorf("R-MA-08: %s was called for a config that is none", call)
				}
			}
			if n := w.cloud.Calls()["Validate"]; n > 8 {
				t.Errorf("R-MA-08: it was asked %d times", n)
			}
		}
		refused()
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"a"}`) })
		w.running(m.Key)
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Config = []byte(`{"imagine":"b"}`) })
		refused()
		if at := w.live(m.Key); at.Phase != machine.PhaseRunning || at.Update != nil {
			t.Errorf("R-MA-08: phase %s, update %+v", at.Phase, at.Update)
		}
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Config = []byte(`{"image":"a"}`) })
		w.until(m.Key, "without a failure", func(m machine.Machine, _ bool) bool { return m.Failure == nil && m.Phase == machine.PhaseRunning })
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
	})
}

// What an instance has printed is there for whoever asks, and for nobody else.
func TestConsole(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.store.Put(worker("a"))
		if _, err := w.ctl.Console(t.Context(), m.Key, 100); provider.ClassOf(err) != provider.NotFound {
			t.Errorf("before there is an instance: %v", err)
		}
		w.running(m.Key)
		if out, err := w.ctl.Console(t.Context(), m.Key, 100); err != nil || len(out) == 0 {
			t.Errorf("console %q, %v", out, err)
		}
		w.options.Provider = provider.Minimal(onlyTwo{cloud{w.cloud, w}})
		w.start()
		if _, err := w.ctl.Console(t.Context(), m.Key, 100); provider.ClassOf(err) != provider.NotSupported {
			t.Errorf("of a provider that has none: %v", err)
		}
	})
}

// R-MA-11: while a machine is drained for an update or for decommissioning, the autoscaler is kept from its Node, and after an update no more; what somebody else has
// set stays; of a machine that is deleted the autoscaler knows.
func TestAutoscalerIsKeptAway(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.store.Put(worker("a"))
		at, _ := w.running(m.Key)
		node := func() machine.Node {
			t.Helper()
			nodes, err := w.nodes.Live(t.Context(), at.Token)
			if err != nil || len(nodes) != 1 {
				t.Fatalf("Nodes %v, %v", nodes, err)
			}
			return nodes[0]
		}
		w.nodes.Stick("pod default/db: its budget allows nothing")
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.2" })
		w.until(m.Key, "draining", func(m machine.Machine, _ bool) bool { return strings.Contains(m.Step.Blocker, "its budget") })
		if n := node(); n.Annotations[machine.NoScaleDownAnnotation] != "true" || !n.Marked {
			t.Errorf("R-MA-11: while it is drained its Node has %v", n.Annotations)
		}
		w.nodes.Stick("")
		w.running(m.Key)
		if n := node(); n.Annotations[machine.NoScaleDownAnnotation] != "" || n.Marked || w.nodes.Writes()["Mark"] != 2 {
			t.Errorf("R-MA-11: after the update its Node has %v, and was marked by %v", n.Annotations, w.nodes.Writes())
		}
		w.nodes.Edit(at.Token, func(n *machine.Node) { n.Annotations = map[string]string{machine.NoScaleDownAnnotation: "false"} })
		w.store.Edit(m.Key, func(m *machine.Machine) { m.Spec.Versions.Kubelet = "v1.36.3" })
		w.until(m.Key, "updated", func(m machine.Machine, _ bool) bool { return m.Versions.Kubelet == "v1.36.3" && m.Update == nil })
		if n := node(); n.Annotations[machine.NoScaleDownAnnotation] != "false" || w.nodes.Writes()["Mark"] != 2 {
			t.Errorf("R-MA-11: what somebody has set is %v, and was marked by %v", n.Annotations, w.nodes.Writes())
		}
		w.store.Delete(m.Key)
		w.gone(m.Key)
		w.clean()
	})
}
