// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/internal/tier"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A life of a fleet on a real control plane, with a controller in a process of its own: a staged rollout; a fatal revision, which stops by itself within
// the bound that the status has shown before (R-RO-28); a freeze that is accepted, with a fix for the broken nodes; an abort after whose
// acknowledgement no node commits (R-RO-19), and which is resumed (R-RO-20) while three of ten nodes leave and as many join (R-RO-30); a rollback by
// number (R-RO-29). Nodes and the work on them are judged before and after, as in production (R-RO-10): none of this is taken for work that is lost.
func TestLifeOfAFleet(t *testing.T) {
	t.Parallel()
	o := rolloutstage.Options{Nodes: 10, Cap: 3, PodsPerNode: 2, Verify: 200 * time.Millisecond}
	if tier.RunsWhole(t) {
		o.Nodes, o.Cap = 20, 5
	}
	f := newFleet(t, o)
	must(t, f.Begin(t.Context(), "v2", func(s *v1alpha1.RolloutSpec) {
		s.Stages = []v1alpha1.Stage{
			{Name: "canary", Size: ptr.To(intstr.FromInt32(3)), Soak: &metav1.Duration{Duration: time.Second}}, {Name: "rest"},
		}
		s.RetryAfter = &metav1.Duration{Duration: time.Second}
	}))
	p := f.spawn(rolloutstage.Task{Health: true})
	f.brought(p, "v2")
	f.fatal(p, "fatal-3")
	f.asks(p, v1alpha1.Verb{Do: v1alpha1.Do(rollout.Accept)})
	must(t, f.Turn(t.Context(), "v4"))
	f.aborted(p, "v4")
	f.asks(p, v1alpha1.Verb{Do: v1alpha1.Do(rollout.Resume)})
	f.churn()
	f.brought(p, "v4")
	f.asks(p, v1alpha1.Verb{Do: v1alpha1.DoRollback, Number: 1})
	f.brought(p, "v2")
}

// brought waits for the end of a rollout, after which every node runs the revision.
func (f *fleet) brought(p *rolloutstage.Process, revision string) {
	f.t.Helper()
	f.completed(p, revision)
	nodes, err := f.Core.CoreV1().Nodes().List(f.t.Context(), metav1.ListOptions{})
	must(f.t, err)
	machines := f.Crew.Machines()
	for i := range nodes.Items {
		name := nodes.Items[i].Name
		if machines[name] == nil {
			f.t.Errorf("node %q has no agent", name)
		} else if current, _ := machines[name].History(); current != revision {
			f.t.Errorf("node %q runs %q, want %q", name, current, revision)
		}
	}
	f.sound()
}

// fatal has a revision rolled out that breaks each node that it is tried on, and waits until the rollout has stopped by itself.
func (f *fleet) fatal(p *rolloutstage.Process, revision string) {
	f.t.Helper()
	must(f.t, f.Turn(f.t.Context(), revision))
	var bound *v1alpha1.WorstCase
	var r *v1alpha1.Rollout
	rolloutstage.Eventually(f.t, "a fatal revision freezes the rollout", patience, func(ctx context.Context) (err error) {
		must(f.t, p.Alive())
		if r, err = f.Rollout(ctx); err != nil {
			return err
		}
		if w := r.Status.WorstCase; bound == nil && r.Status.ObservedGeneration == r.Generation && r.Status.Phase == v1alpha1.RolloutPhase(rollout.Running) {
			bound = w
		}
		if l, err := f.Ledger(ctx); err != nil || r.Status.Phase != v1alpha1.RolloutPhase(rollout.Frozen) || slices.ContainsFunc(l.Slots, f.flies) {
			return fmt.Errorf("it is %s, with %d slots: %s; %w", r.Status.Phase, len(l.Slots), r.Status.Message, err)
		}
		return nil
	})
	broken := 0
	for _, m := range f.Crew.Machines() {
		if _, applied := m.History(); slices.Contains(applied, revision) {
			broken++
		}
	}
	if bound == nil || broken == 0 || int64(broken) > bound.Broken {
		f.t.Errorf("R-RO-28: %d nodes are broken, the status has said before: %+v", broken, bound)
	}
	f.t.Logf("%d nodes were broken; %+v; %s", broken, bound, r.Status.Message)
}

// flies reports whether the attempt of a slot may still break its node.
func (*fleet) flies(s protocol.Slot) bool { return s.State == "" }

// asks asks for something, and waits until it is carried out.
func (f *fleet) asks(p *rolloutstage.Process, v v1alpha1.Verb) {
	f.t.Helper()
	request, err := f.Ask(f.t.Context(), v)
	must(f.t, err)
	rolloutstage.Eventually(f.t, string(v.Do)+" is carried out", patience, func(ctx context.Context) error {
		must(f.t, p.Alive())
		r, err := f.Rollout(ctx)
		switch {
		case err != nil:
			return err
		case r.Status.HandledRequest != request:
			return fmt.Errorf("the last request that was looked at is %q", r.Status.HandledRequest)
		case r.Status.Refusal != "":
			f.t.Fatalf("%s was refused: %s", v.Do, r.Status.Refusal)
		}
		return nil
	})
}

// aborted aborts a rollout when a quarter of the nodes run it, and proves that no node commits after that was acknowledged.
func (f *fleet) aborted(p *rolloutstage.Process, revision string) {
	f.t.Helper()
	rolloutstage.Eventually(f.t, revision+" is on a quarter of the nodes", patience, func(context.Context) error {
		must(f.t, p.Alive())
		if n := f.Runs(revision); n < f.Nodes/4 {
			return fmt.Errorf("%d nodes run it", n)
		}
		return nil
	})
	f.asks(p, v1alpha1.Verb{Do: v1alpha1.Do(rollout.Abort)})
	rolloutstage.Eventually(f.t, "the abort is acknowledged", patience, func(ctx context.Context) error {
		must(f.t, p.Alive())
		r, err := f.Rollout(ctx)
		if err == nil && !r.Status.Acknowledged {
			err = fmt.Errorf("it is %s", r.Status.Phase)
		}
		return err
	})
	commits := f.commits()
	rolloutstage.Eventually(f.t, "the abort ends", patience, func(ctx context.Context) error {
		must(f.t, p.Alive())
		r, err := f.Rollout(ctx)
		if err == nil && r.Status.Phase != v1alpha1.RolloutPhase(rollout.Aborted) {
			err = fmt.Errorf("it is %s", r.Status.Phase)
		}
		return err
	})
	before := f.Runs(revision)
	<-time.After(5 * time.Second)
	if now, n := f.commits(), f.Runs(revision); !slices.Equal(now, commits) || n != before {
		f.t.Errorf("R-RO-19: after the abort was acknowledged the last attempts went from %v to %v, and %d to %d nodes run %q", commits, now, before, n, revision)
	}
	if before >= f.Nodes {
		f.t.Errorf("all %d nodes run %q already: nothing is proven", before, revision)
	}
	f.t.Logf("aborted when %d of %d nodes ran %q", before, f.Nodes, revision)
}

// commits are the last committed attempts of all shadows as the API server has them, in order.
func (f *fleet) commits() (all []int64) {
	f.t.Helper()
	client, err := kube.NewShadows(f.Client)
	must(f.t, err)
	shadows, err := client.List(f.t.Context())
	must(f.t, err)
	for i := range shadows {
		all = append(all, shadows[i].Status.Attempt)
	}
	slices.Sort(all)
	return all
}

// churn has three of ten nodes leave, and as many others join. Those leave that nothing is done to: a node that leaves in the middle of its change is lost,
// and some of these in a row freeze the rollout, with nobody to accept that.
func (f *fleet) churn() {
	f.t.Helper()
	for i := range f.Nodes * 3 / 10 {
		must(f.t, f.RemoveNode(f.t.Context(), f.idle()))
		must(f.t, f.AddNode(f.t.Context(), fmt.Sprintf("joined-%04d", i)))
	}
}

// idle is the first node, from the last one down, that has no slot.
func (f *fleet) idle() (name string) {
	f.t.Helper()
	l, err := f.Ledger(f.t.Context())
	must(f.t, err)
	machines := f.Crew.Machines()
	for i := range f.Nodes {
		name = rolloutstage.NodeName(f.Nodes - 1 - i)
		if machines[name] != nil && !slices.ContainsFunc(l.Slots, func(s protocol.Slot) bool { return s.Node == name }) {
			return name
		}
	}
	f.t.Fatalf("every node has a slot: %+v", l.Slots)
	return ""
}
