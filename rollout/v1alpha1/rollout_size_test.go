// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

func bigUID(r *rand.Rand) string {
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<48))
}

func bigName(r *rand.Rand) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", r.IntN(256), r.IntN(256), r.IntN(256))
}

// bigProgress is near the end of a rollout over so many nodes, of which so many are in flight or were put off.
func bigProgress(n, remembered int) rollout.Progress {
	r := rand.New(rand.NewPCG(1, 2))
	p := rollout.Progress{Phase: rollout.Running, Targets: []protocol.Revision{inPolicyRef("v2")}, Nodes: map[string]rollout.NodeProgress{}}
	for range n {
		p.Members = append(p.Members, bigUID(r))
	}
	slices.Sort(p.Members)
	at := epoch()
	for _, i := range r.Perm(n) {
		at = at.Add(time.Duration(r.Int64N(int64(10 * time.Second))))
		o := rollout.Outcome{Node: bigName(r), UID: p.Members[i], Result: rollout.Succeeded, At: at}
		if r.IntN(20) == 0 {
			o.Result = rollout.FailedClean
		}
		p.Outcomes = append(p.Outcomes, o)
		if len(p.Nodes) < remembered {
			p.Nodes[o.UID] = rollout.NodeProgress{
				Node: o.Node, Attempt: protocol.Attempt(len(p.Nodes)), State: protocol.Verifying,
				Since: at, Admitted: at.Add(-time.Hour - time.Duration(r.Int64N(1e12))), Result: o.Result, Attempts: r.IntN(3), Deferrals: r.IntN(3), NotBefore: at.Add(time.Duration(r.Int64N(1e12))), Failed: true,
			}
		}
	}
	for range 100 {
		p.Cycles = append(p.Cycles, time.Duration(r.Int64N(int64(time.Hour))))
	}
	return p
}

func inPolicyRef(name string) protocol.Revision {
	r := inPolicy(name)
	return r.Ref()
}

// bigRollout is one over so many nodes, with a status that is as full as it can be.
func bigRollout(t *testing.T, n, remembered int) (*v1alpha1.Rollout, v1alpha1.Observed) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(3, 4))
	r := rolloutOf(t, "")
	o := v1alpha1.Observed{
		Policy: rollout.Policy{UID: "uid-r", Target: inPolicy("v2")},
		Decisions: rollout.Decisions{
			Phase: rollout.Running, Reason: rollout.ReasonInFlight, Message: "under way", Progress: bigProgress(n, remembered),
			Counts: rollout.Counts{Selected: n, InFlight: remembered}, Waiting: map[rollout.Reason]int{"Cap": n - remembered},
		},
	}
	for i := range n {
		o.Decisions.Nodes = append(o.Decisions.Nodes, rollout.Decision{
			Node: bigName(rnd), UID: o.Decisions.Progress.Members[i], State: protocol.Resting,
			Why: &rollout.Why{Reason: "Cap", Message: fmt.Sprintf("%d nodes of the domain are away, the limit is 250 by caps[0]", rnd.IntN(1000))},
		})
	}
	for i := range int64(v1alpha1.DefaultHistoryLimit) {
		e := v1alpha1.HistoryEntry{Number: i + 1, Started: metav1.NewTime(epoch()), Counts: &v1alpha1.RolloutCounts{}}
		e.Revision = pinned(fmt.Sprint("v", i))
		for range v1alpha1.MaxFailedNodes {
			e.FailedNodes = append(e.FailedNodes, bigName(rnd))
		}
		r.Status.History = append(r.Status.History, e)
	}
	return r, o
}

// A Rollout over 5,000 nodes fits into etcd several times over, also when something is remembered of every node.
func TestRolloutOfFiveThousandNodesIsSmall(t *testing.T) {
	for _, c := range []struct{ remembered, limit int }{{500, 300 << 10}, {5000, 700 << 10}} {
		r, o := bigRollout(t, 5000, c.remembered)
		began := time.Now()
		r.Status, _ = v1alpha1.StatusOf(r, o, epoch())
		took := time.Since(began)
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		p := r.Status.Progress
		t.Logf("%d remembered: %d bytes, of them members %d, nodes %d, outcomes %d; made in %s",
			c.remembered, len(raw), len(p.Members), len(p.Nodes), len(p.Outcomes), took)
		if len(raw) > c.limit {
			t.Errorf("with %d of 5000 nodes remembered it takes %d bytes, want at most %d", c.remembered, len(raw), c.limit)
		}
		checkProgress(t, r.Status, o.Decisions.Progress)
	}
}
