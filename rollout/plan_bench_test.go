// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// benchFleet is a domain of 5,000 nodes in 20 groups and 3 zones, half of them done, 250 in flight, 20 away, in random order.
func benchFleet(t *testing.T, nodes, groups, inFlight int) *fleet {
	t.Helper()
	f := newFleet(t, 0)
	f.p.Groups = nil
	for g := range groups {
		pool := labels.SelectorFromSet(labels.Set{"pool": fmt.Sprintf("pool-%02d", g)})
		f.p.Groups = append(f.p.Groups, Group{Name: fmt.Sprintf("group-%02d", g), Selector: pool})
	}
	f.p.Stages = []Stage{{Name: "canary", Size: size(5)}, {Name: "all"}}
	f.p.Caps = []Cap{{Scope: Total, Max: number(inFlight + 25)}, {Scope: ByGroup, Max: intstr.FromString("20%")}, {Scope: ByZone, Max: intstr.FromString("50%")}}
	for i := range nodes {
		f.add(fmt.Sprintf("ip-10-%d-%d.eu-central-1.compute.internal", i/250, i%250), map[string]string{
			zone: fmt.Sprintf("eu-central-1%c", 'a'+i%3), "pool": fmt.Sprintf("pool-%02d", i%groups), "kubernetes.io/os": "linux",
			"kubernetes.io/arch": "amd64", "node.kubernetes.io/instance-type": "m6i.4xlarge",
		}).UID = fmt.Sprintf("0b5f9c1e-6d1c-4d0b-9f5e-%012d", i)
		f.s.Nodes[i].Shadow.UID = f.s.Nodes[i].UID
	}
	f.plan()
	f.settle(nodes/2, inFlight)
	rand.New(rand.NewPCG(1, 2)).Shuffle(nodes, func(i, j int) { f.s.Nodes[i], f.s.Nodes[j] = f.s.Nodes[j], f.s.Nodes[i] })
	for i := range 20 {
		f.s.Nodes[i*7].Away = "not ready"
	}
	return f
}

// settle makes the first nodes done, and has the next ones apply the revision.
func (f *fleet) settle(done, inFlight int) {
	f.s.Ledger = protocol.Ledger{Epoch: protocol.Attempt(done)}
	f.s.Progress.Stage, f.s.Progress.Nodes = 1, nil
	for i := range f.s.Nodes[:done+inFlight] {
		n := &f.s.Nodes[i]
		if i < done {
			n.Runs = protocol.Revision{Name: "v2", Digest: "sha256:v2"}
			f.s.Progress.Outcomes = append(f.s.Progress.Outcomes, Outcome{Node: n.Name, UID: n.UID, Result: Succeeded, At: f.now})
			continue
		}
		keys := []string{"class/Intrusive", "group/group-" + n.Labels["pool"][5:], "zone/" + n.Labels[zone]}
		l, err := f.s.Ledger.Admit(protocol.Admission{Shadow: *n.Shadow, Rollout: f.p.UID, Keys: keys}, nil, nil)
		if err != nil {
			f.t.Fatal(err)
		}
		f.s.Ledger = l
		n.Shadow.Orders = protocol.Orders{Grant: l.Epoch, Proceed: l.Epoch, Revision: "v2@sha256:v2"}
		n.Shadow.Report = protocol.Report{Known: true, Attempt: l.Epoch, Phase: protocol.PhaseApplying, Revision: "v2@sha256:v2"}
	}
	f.s.Progress = planOnce(f).Progress
}

func planOnce(f *fleet) Decisions {
	p := f.p
	p.Caps = []Cap{{Scope: Total, Max: number(1)}} // admits nothing
	d, err := Plan(f.s, p, f.now)
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

// A pass over 5,000 nodes in 20 groups takes less than 10 ms and makes less than 1 MB of garbage: quiet is one in which nothing is to be
// done. With an event, one node has come to an end and another one is admitted; busy is ten of that, each of which copies the ledger twice.
func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct {
		name string
		ends int
	}{{"quiet", 0}, {"event", 1}, {"busy", 10}} {
		b.Run(c.name, func(b *testing.B) {
			t := &testing.T{}
			f := benchFleet(t, 5000, 20, 250)
			f.p.Caps[0].Max = number(250 + 20)
			for i, n := 0, 0; n < c.ends; i++ {
				if s := f.s.Nodes[i].Shadow; s.Report.Phase == protocol.PhaseApplying {
					s.Report.Phase = protocol.PhaseDone
					f.s.Nodes[i].Runs = protocol.Revision{Name: "v2", Digest: "sha256:v2"}
					n++
				}
			}
			d, err := Plan(f.s, f.p, f.now.Add(time.Second))
			if err != nil || len(doing(d, protocol.EventAdmit)) != c.ends || len(doing(d, protocol.EventRelease)) != c.ends || d.Counts.Selected != 5000 {
				b.Fatalf("%v: %+v", err, d.Counts)
			}
			b.ReportAllocs()
			var planner Planner
			for b.Loop() {
				if _, err := planner.Plan(f.s, f.p, f.now.Add(time.Second)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
