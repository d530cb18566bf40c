// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// pooled is a pass over so many nodes, an equal part of them in each of some pools, with rollouts that select a pool each: one after the other, and then again from
// the first pool on. A tenth of the nodes have a slot of the first rollout of their pool, and the caps leave no room for more.
func pooled(t *testing.T, nodes, rollouts, pools int) *pass {
	t.Helper()
	c, err := New(Options{
		Ledger: struct{ rollout.LedgerStore }{}, Rollouts: struct{ Rollouts }{}, Fleet: struct{ Fleet }{}, Shadows: struct{ Shadows }{},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &pass{c: c, ctx: t.Context(), now: time.Now(), stored: map[string]rollout.Progress{}, byUID: map[string]int{}}
	for i := range rollouts {
		p.rollouts = append(p.rollouts, Rollout{Name: fmt.Sprintf("rollout-%02d", i), Policy: rollout.Policy{
			UID: fmt.Sprintf("uid-of-rollout-%02d", i), Target: rollout.Revision{Name: "v2", Digest: "sha256:v2"}, Detectors: []rollout.Detector{},
			Groups: []rollout.Group{{Name: "workers", Selector: labels.SelectorFromSet(labels.Set{"pool": fmt.Sprint(i % pools)})}},
			Caps:   []rollout.Cap{{Scope: rollout.Total, Max: intstr.FromInt32(1)}},
		}})
	}
	for i := range nodes {
		name, pool := fmt.Sprintf("node-%04d", i), i%pools
		sh := protocol.Shadow{Node: name, UID: "uid-of-" + name, Report: protocol.Report{Known: true}}
		if i/pools%10 == 0 {
			p.ledger.Epoch++
			p.ledger.Slots = append(p.ledger.Slots, protocol.Slot{Node: name, UID: sh.UID, Rollout: p.rollouts[pool].Policy.UID, Attempt: p.ledger.Epoch})
		}
		p.byUID[sh.UID] = i
		p.nodes = append(p.nodes, nodeView{Node: Node{Name: name, UID: sh.UID, Ready: true}})
		p.snapshot = append(p.snapshot, rollout.Node{
			Name: name, UID: sh.UID, Labels: labels.Set{"pool": fmt.Sprint(pool)}, Shadow: &sh, Health: rollout.Verdict{Answer: rollout.Allow},
		})
	}
	return p
}

// garbage is how much memory a call takes, in bytes and in pieces, when others were made before it.
func garbage(f func()) (bytes, pieces uint64) {
	const calls = 5
	for range 3 {
		f()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		f()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / calls, (after.Mallocs - before.Mallocs) / calls
}

// planned has the rollouts of a pass planned as often as a decision does it, each as if the others had no nodes.
func planned(t *testing.T, p *pass) {
	t.Helper()
	for range 2 {
		for i := range p.rollouts {
			s := rollout.Snapshot{Ledger: p.ledger, Nodes: p.snapshot, Progress: p.rollouts[i].Progress}
			if _, err := p.c.mind.planner.Plan(s, p.rollouts[i].Policy, p.now); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Rollouts that have nothing to do with each other's nodes cost what their plans cost: 20 of them over 1,000 nodes copy no snapshot, and say nothing of
// nodes.
func TestDisjointRolloutsCostTheirPlans(t *testing.T) {
	p := pooled(t, 1000, 20, 20)
	bytes, pieces := garbage(func() { planned(t, p) })
	inBytes, inPieces := garbage(func() { p.decide() })
	t.Logf("the plans take %d bytes in %d pieces, the decision %d in %d", bytes, pieces, inBytes, inPieces)
	if inBytes > 2*bytes || inPieces > pieces+pieces/10 {
		t.Errorf("a decision for 20 disjoint rollouts takes %d bytes in %d pieces, want twice the bytes of their plans at most, and a tenth more pieces: %d in %d", inBytes, inPieces, bytes, pieces)
	}
	for i := range p.decided {
		if d := &p.decided[i]; p.refused[p.rollouts[i].Policy.UID] != nil || d.Counts.Selected != 50 || len(d.Findings) > 0 {
			t.Fatalf("rollout %d: %q, %+v, findings %+v; want 50 nodes selected, and none of another's", i, d.Message, d.Counts, d.Findings)
		}
	}
}

// textsAbout counts the texts by which nodes are said to be another rollout's.
func textsAbout(nodes []rollout.Decision, owner string) int {
	whys := map[*rollout.Why]bool{}
	for _, n := range nodes {
		if n.Why != nil && n.Why.Reason == rollout.ReasonOther && strings.Contains(n.Why.Message, owner) {
			whys[n.Why] = true
		}
	}
	return len(whys)
}

// Where they do, a decision takes no new snapshot for each plan, and the nodes of one owner share what is said of them. Each says so in every decision,
// whether it was known before or not, and not any more when it is over.
func TestOverlapSharesWhatItSays(t *testing.T) {
	p := pooled(t, 1000, 4, 2)
	bytes, pieces := garbage(func() { planned(t, p) })
	for round := range 3 {
		p.decide()
		for i := range p.decided {
			said := len(p.decided[i].Findings) > 0 && p.decided[i].Waiting[rollout.ReasonOther] == 500
			if (i >= 2) != said {
				t.Errorf("decision %d, rollout %d: findings %+v, waiting %+v; want 500 nodes that wait for another one: %t", round, i, p.decided[i].Findings, p.decided[i].Waiting, i >= 2)
			}
			if n, want := textsAbout(p.decided[i].Nodes, p.rollouts[i%2].Name), min(i/2, 1); n != want {
				t.Errorf("decision %d, rollout %d: %d texts for the nodes of one other rollout, want %d", round, i, n, want)
			}
		}
	}
	inBytes, inPieces := garbage(func() { p.decide() })
	t.Logf("the plans take %d bytes in %d pieces, the decision %d in %d", bytes, pieces, inBytes, inPieces)
	for i := range p.snapshot {
		if v := p.snapshot[i].Health; v.Answer != rollout.Allow {
			t.Fatalf("node %d is left as %+v, want what was seen of it", i, v)
		}
	}
	if len(p.c.mind.seen) != 1000 || p.c.mind.seen[0].Shadow != nil {
		t.Errorf("the memory for what they see has %d nodes, the first with the shadow %+v; want 1000 that keep nothing alive", len(p.c.mind.seen), p.c.mind.seen[0].Shadow)
	}
	for i := range p.rollouts[2:] {
		p.rollouts[2+i].Policy.Groups[0].Selector = labels.Nothing()
	}
	p.decide()
	for i := range p.decided {
		if len(p.decided[i].Findings) > 0 {
			t.Errorf("rollout %d: findings %+v, want none when nothing overlaps any more", i, p.decided[i].Findings)
		}
	}
}
