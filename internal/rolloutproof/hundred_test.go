// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A life of a fleet on a real control plane, with a controller in a process of its own: a staged rollout; a fatal revision, which stops by itself within
// the bound that the status has shown before (R-RO-12); a freeze that is accepted, with a fix that goes to the broken nodes first (R-RO-17); an abort
// after whose acknowledgement no node commits (R-RO-19), and which is resumed (R-RO-20) while three of ten nodes leave and as many join (R-RO-10); a
// rollback by number (R-RO-21). BELAY_ROLLOUT_NODES=100 is the proof in full.
func TestLifeOfAFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, fleetSize(t, 20), 5, 200*time.Millisecond)
	p := spawn(t, f.env, childTask{Domain: domain})
	f.staged("v2")
	f.ends(p, "v2")
	f.fatal(p, "fatal-3")
	f.verb(p, v1alpha1.Verb{Do: v1alpha1.Do(rollout.Accept)})
	f.patch(map[string]any{"revision": f.revision("v4")})
	f.aborted(p, "v4")
	f.verb(p, v1alpha1.Verb{Do: v1alpha1.Do(rollout.Resume)})
	f.churn()
	f.ends(p, "v4")
	f.verb(p, v1alpha1.Verb{Do: v1alpha1.DoRollback, Number: 1})
	f.ends(p, "v2")
}

// staged begins a rollout with a canary stage.
func (f *fleet) staged(revision string) {
	f.t.Helper()
	f.create(v1alpha1.RolloutsResource, v1alpha1.RolloutKind, domain, &v1alpha1.Rollout{Spec: v1alpha1.RolloutSpec{
		Domain: domain, Revision: f.revision(revision), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": domain}},
		Caps: []v1alpha1.Cap{{Scope: v1alpha1.Scope(rollout.Total), Max: intstr.FromInt(f.cap)}},
		Stages: []v1alpha1.Stage{
			{Name: "canary", Size: new(intstr.FromInt32(3)), Soak: &metav1.Duration{Duration: time.Second}}, {Name: "rest"},
		},
		RetryAfter: &metav1.Duration{Duration: time.Second},
	}})
}

// ends waits for the end of a rollout, after which every node runs the revision.
func (f *fleet) ends(p *process, revision string) {
	f.t.Helper()
	eventually(f.t, "the rollout of "+revision+" ends", func(ctx context.Context) error {
		p.next()
		if err := f.over(ctx, revision); err != nil {
			return err
		}
		if r, err := f.rollout(ctx); err != nil || r.Status.Revision == nil || r.Status.Revision.Name != revision {
			return fmt.Errorf("the rollout is about %+v, want %q: %w", r.Status.Revision, revision, err)
		}
		nodes, err := f.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range nodes.Items {
			if current, _ := f.crew.of(nodes.Items[i].Name).history(); current != revision {
				return fmt.Errorf("node %q runs %q, want %q", nodes.Items[i].Name, current, revision)
			}
		}
		return nil
	})
	f.sound()
}

// sound checks what no version of the ledger or of a Node may show.
func (f *fleet) sound() {
	f.t.Helper()
	wrong, _, slots, versions := f.truth.report()
	for _, w := range wrong {
		f.t.Errorf("R-RO-01: %s", w)
	}
	f.t.Logf("at most %d slots in %d versions of the ledger", slots, versions)
}

// fatal has a revision rolled out that breaks each node that it is tried on, and waits until the rollout has stopped by itself.
func (f *fleet) fatal(p *process, revision string) {
	f.t.Helper()
	f.patch(map[string]any{"revision": f.revision(revision)})
	var r *v1alpha1.Rollout
	eventually(f.t, "a fatal revision freezes the rollout", func(ctx context.Context) (err error) {
		p.next()
		if r, err = f.rollout(ctx); err == nil && r.Status.Phase != v1alpha1.RolloutPhase(rollout.Frozen) {
			err = fmt.Errorf("it is %s: %s", r.Status.Phase, r.Status.Message)
		}
		return err
	})
	broken := 0
	for _, m := range f.crew.all() {
		if _, applied := m.history(); slices.Contains(applied, revision) {
			broken++
		}
	}
	if r.Status.WorstCase == nil || broken == 0 || int64(broken) > r.Status.WorstCase.Broken {
		f.t.Errorf("R-RO-12: %d nodes are broken, the status has said before: %+v", broken, r.Status.WorstCase)
	}
	f.t.Logf("%d nodes were broken; %+v; %s", broken, r.Status.WorstCase, r.Status.Message)
}

// verb asks for something, and waits until it is carried out.
func (f *fleet) verb(p *process, v v1alpha1.Verb) {
	f.t.Helper()
	v.Request = fmt.Sprintf("%s-%d", v.Do, time.Now().UnixNano())
	f.patch(map[string]any{"verb": v})
	eventually(f.t, string(v.Do)+" is carried out", func(ctx context.Context) error {
		p.next()
		r, err := f.rollout(ctx)
		switch {
		case err != nil:
			return err
		case r.Status.HandledRequest != v.Request:
			return fmt.Errorf("the last request that was looked at is %q", r.Status.HandledRequest)
		case r.Status.Refusal != "":
			f.t.Fatalf("%s was refused: %s", v.Do, r.Status.Refusal)
		}
		return nil
	})
}

// aborted aborts a rollout when it is half way, and proves that no node commits after it was acknowledged.
func (f *fleet) aborted(p *process, revision string) {
	f.t.Helper()
	eventually(f.t, revision+" is half way", func(ctx context.Context) error {
		p.next()
		if n := f.runs(revision); n < f.size/4 {
			return fmt.Errorf("%d nodes run it", n)
		}
		return nil
	})
	f.verb(p, v1alpha1.Verb{Do: v1alpha1.Do(rollout.Abort)})
	eventually(f.t, "the abort is acknowledged", func(ctx context.Context) error {
		p.next()
		r, err := f.rollout(ctx)
		if err == nil && (r.Status.Phase != v1alpha1.RolloutPhase(rollout.Aborted) || !r.Status.Acknowledged) {
			err = fmt.Errorf("it is %s, acknowledged: %t", r.Status.Phase, r.Status.Acknowledged)
		}
		return err
	})
	before, commits := f.runs(revision), f.commits()
	<-time.After(5 * time.Second)
	if now, n := f.commits(), f.runs(revision); !slices.Equal(now, commits) || n != before {
		f.t.Errorf("R-RO-19: after the abort was acknowledged the attempts that were committed went from %v to %v, and %d to %d nodes run %q", commits, now, before, n, revision)
	}
	if before >= f.size {
		f.t.Errorf("all %d nodes run %q already: nothing is proven", before, revision)
	}
	f.t.Logf("aborted when %d of %d nodes ran %q", before, f.size, revision)
}

// runs is how many nodes run a revision.
func (f *fleet) runs(revision string) (n int) {
	for _, m := range f.crew.all() {
		if current, _ := m.history(); current == revision {
			n++
		}
	}
	return n
}

// commits are the last committed attempts of all shadows, in order.
func (f *fleet) commits() (all []int64) {
	for _, sh := range f.crew.cache.List() {
		all = append(all, sh.Status.Attempt)
	}
	slices.Sort(all)
	return all
}

// churn has three of ten nodes leave, among them such as are under way, and as many others join.
func (f *fleet) churn() {
	f.t.Helper()
	n := f.size * 3 / 10
	for i := range n {
		name := fmt.Sprintf("node-%03d", f.size-1-i)
		must(f.t, f.core.CoreV1().Nodes().Delete(f.t.Context(), name, metav1.DeleteOptions{}))
		f.crew.remove(name)
		f.addNode(fmt.Sprintf("joined-%03d", i))
	}
}
