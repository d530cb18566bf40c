// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// The bars of a pass over the fleet.
const (
	passTime    = 10 * time.Millisecond
	passGarbage = 1 << 20
)

// A domain is a fleet in the middle of a rollout.
type domain struct {
	snapshot rollout.Snapshot
	policy   rollout.Policy
	planner  rollout.Planner
	now      time.Time
}

// plan is R3, by a planner as the controller has it: for pass after pass. Quiet is a pass in which nothing is to be done, which is what most are; with an
// event one node has come to its end and another one is admitted.
func (b *bench) plan(ctx context.Context) error {
	const nodes, groups, inFlight = 5000, 20, 250
	for _, c := range []struct {
		name string
		ends int
	}{{"quiet", 0}, {"event", 1}, {"busy", 10}} {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		d, err := newDomain(nodes, groups, inFlight, c.ends)
		if err != nil {
			return err
		}
		var took runner.Figures[time.Duration]
		var garbage runner.Figures[float64]
		for range b.Repeats {
			r := testing.Benchmark(d.pass)
			took = append(took, time.Duration(r.NsPerOp()))
			garbage = append(garbage, float64(r.AllocedBytesPerOp())/passGarbage)
		}
		what := fmt.Sprintf("%d nodes, %d groups, %d in flight, %d of them at their end", nodes, groups, inFlight, c.ends)
		b.Print(runner.Line{
			Name: "R3." + c.name + "-time", Ours: took.String(), Bar: passTime.String(), Good: took.Median() < passTime, More: "a pass; " + what,
		})
		b.Print(runner.Line{
			Name: "R3." + c.name + "-garbage", Ours: garbage.String() + "MiB", Bar: "1.000MiB", Good: garbage.Median() < 1, More: "a pass; " + what,
		})
	}
	return nil
}

func (d *domain) pass(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.planner.Plan(d.snapshot, d.policy, d.now); err != nil {
			b.Fatal(err)
		}
	}
}

// newDomain is half done. So many nodes apply the revision, of which some have come to their end.
func newDomain(nodes, groups, inFlight, ends int) (*domain, error) {
	d := &domain{now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), policy: rollout.Policy{
		UID: "rollout-1", Target: rollout.Revision{Name: "v2", Digest: "sha256:v2"}, Completed: rollout.Revision{Name: "v1", Digest: "sha256:v1"},
		Stages: []rollout.Stage{{Name: "canary", Size: new(intstr.FromInt32(5))}, {Name: "all"}}, Detectors: nil,
		Caps: []rollout.Cap{
			{Scope: rollout.Total, Max: intstr.FromInt(inFlight + 20)}, {Scope: rollout.ByGroup, Max: intstr.FromString("20%")},
			{Scope: rollout.ByZone, Max: intstr.FromString("50%")},
		},
	}}
	for g := range groups {
		pool := labels.SelectorFromSet(labels.Set{"pool": fmt.Sprintf("pool-%02d", g)})
		d.policy.Groups = append(d.policy.Groups, rollout.Group{Name: fmt.Sprintf("group-%02d", g), Selector: pool})
	}
	for i := range nodes {
		d.add(i, groups)
	}
	if err := d.step(d.policy); err != nil {
		return nil, err
	}
	if err := d.settle(nodes/2, inFlight); err != nil {
		return nil, err
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(nodes, func(i, j int) { //nolint:gosec // the same order each time
		d.snapshot.Nodes[i], d.snapshot.Nodes[j] = d.snapshot.Nodes[j], d.snapshot.Nodes[i]
	})
	for i := range 20 {
		d.snapshot.Nodes[i*7].Away = "not ready"
	}
	for i, n := 0, 0; n < ends; i++ {
		if node := &d.snapshot.Nodes[i]; node.Shadow.Report.Phase == protocol.PhaseApplying {
			node.Shadow.Report.Phase, node.Runs = protocol.PhaseDone, protocol.Revision{Name: "v2", Digest: "sha256:v2"}
			n++
		}
	}
	d.now = d.now.Add(time.Second)
	return d, d.check(ends)
}

func (d *domain) add(i, groups int) {
	name, uid := fmt.Sprintf("ip-10-%d-%d.eu-central-1.compute.internal", i/250, i%250), fmt.Sprintf("0b5f9c1e-6d1c-4d0b-9f5e-%012d", i)
	d.snapshot.Nodes = append(d.snapshot.Nodes, rollout.Node{
		Name: name, UID: uid, Runs: protocol.Revision{Name: "v1", Digest: "sha256:v1"}, Health: rollout.Verdict{Answer: rollout.Allow},
		Shadow: &protocol.Shadow{Node: name, UID: uid, Report: protocol.Report{Known: true}},
		Labels: map[string]string{
			corev1.LabelTopologyZone: fmt.Sprintf("eu-central-1%c", 'a'+i%3), "pool": fmt.Sprintf("pool-%02d", i%groups),
			corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", corev1.LabelInstanceTypeStable: "m6i.4xlarge",
		},
	})
}

// step stores what is decided.
func (d *domain) step(policy rollout.Policy) error {
	decided, err := rollout.Plan(d.snapshot, policy, d.now)
	d.snapshot.Progress = decided.Progress
	return err
}

// settle makes the first nodes done, and has the next ones apply the revision.
func (d *domain) settle(done, inFlight int) error {
	d.snapshot.Ledger = protocol.Ledger{Epoch: protocol.Attempt(done)}
	d.snapshot.Progress.Stage, d.snapshot.Progress.Nodes = 1, nil
	for i := range d.snapshot.Nodes[:done+inFlight] {
		n := &d.snapshot.Nodes[i]
		if i < done {
			n.Runs = protocol.Revision{Name: "v2", Digest: "sha256:v2"}
			d.snapshot.Progress.Outcomes = append(d.snapshot.Progress.Outcomes, rollout.Outcome{Node: n.Name, UID: n.UID, Result: rollout.Succeeded, At: d.now})
			continue
		}
		keys := []string{"class/Intrusive", "group/group-" + n.Labels["pool"][5:], "zone/" + n.Labels[corev1.LabelTopologyZone]}
		l, err := d.snapshot.Ledger.Admit(protocol.Admission{Shadow: *n.Shadow, Rollout: d.policy.UID, Keys: keys}, nil, nil)
		if err != nil {
			return err
		}
		d.snapshot.Ledger = l
		n.Shadow.Orders = protocol.Orders{Grant: l.Epoch, Proceed: l.Epoch, Revision: "v2@sha256:v2"}
		n.Shadow.Report = protocol.Report{Known: true, Attempt: l.Epoch, Phase: protocol.PhaseApplying, Revision: "v2@sha256:v2"}
	}
	none := d.policy
	none.Caps = []rollout.Cap{{Scope: rollout.Total, Max: intstr.FromInt32(1)}}
	return d.step(none)
}

// check makes sure that a pass does what it is measured for.
func (d *domain) check(ends int) error {
	decided, err := rollout.Plan(d.snapshot, d.policy, d.now)
	if err != nil {
		return err
	}
	released, admitted := 0, 0
	for _, n := range decided.Nodes {
		switch n.Do {
		case protocol.EventRelease:
			released++
		case protocol.EventAdmit:
			admitted++
		}
	}
	if released != ends || admitted != ends {
		return fmt.Errorf("a pass frees %d slots and admits %d nodes, want %d of each", released, admitted, ends)
	}
	return nil
}
