// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	"github.com/belayproject/belay/lkg"
	"github.com/belayproject/belay/lkg/lkgtest"
)

// A move is one thing that can happen to a node.
type move struct {
	name string
	do   func(*lkgtest.Machine)
}

func call(op string, f func(context.Context, lkgtest.Tracker) error) func(*lkgtest.Machine) {
	return func(m *lkgtest.Machine) { m.Do(op, f) }
}

func desired(kind lkg.OutcomeKind) func(*lkgtest.Machine) {
	return call("SetDesired", func(ctx context.Context, tr lkgtest.Tracker) error {
		return tr.SetDesired(ctx, lkg.Outcome{Kind: kind})
	})
}

// ended ends the run by a fault, or as every config does in an outage.
func ended(fault lkg.Fault) func(*lkgtest.Machine) {
	return func(m *lkgtest.Machine) {
		m.End(lkg.Exit{Kind: lkg.ExitCrash, Fault: fault, Signature: "the runtime is away"})
	}
}

var moves = []move{
	{"start", func(m *lkgtest.Machine) { m.Start() }},
	{"crash", (*lkgtest.Machine).Crash},
	{"kill", (*lkgtest.Machine).Kill},
	{"reboot", (*lkgtest.Machine).Reboot},
	{"adopt a", func(m *lkgtest.Machine) { m.Adopt(a) }},
	{"adopt broken", func(m *lkgtest.Machine) { m.Adopt(broken) }},
	{"healthy", func(m *lkgtest.Machine) { m.Healthy(70 * time.Second) }},
	{"failing", func(m *lkgtest.Machine) { m.Failing(40 * time.Second) }},
	{"reset", call("Reset", func(ctx context.Context, tr lkgtest.Tracker) error { return tr.Reset(ctx) })},
	{"disk full", func(m *lkgtest.Machine) { m.Store.StopAt(m.Store.Writes()+1, lkgtest.StopFull) }},
	// The moves below are for the random walks.
	{"agent dies", ended(lkg.FaultSupervisor)},
	{"runtime away", ended(lkg.FaultEnvironment)},
	{"not executed", ended(lkg.FaultNotExecuted)},
	{"crash alike", ended("")},
	{"adopt b", func(m *lkgtest.Machine) { m.Adopt(b) }},
	{"adopt c", func(m *lkgtest.Machine) { m.Adopt(c) }},
	{"planned restart", func(m *lkgtest.Machine) { m.Restart(lkg.CausePlanned) }},
	{"a minute", func(m *lkgtest.Machine) { m.Healthy(20 * time.Second) }},
	{"disk ok", func(m *lkgtest.Machine) { m.Store.StopAt(0, lkgtest.StopFull) }},
	{"clock back", func(m *lkgtest.Machine) { m.Step(-100 * 24 * time.Hour) }},
	{"clock forth", func(m *lkgtest.Machine) { m.Step(100 * 24 * time.Hour) }},
	{"forget a", func(m *lkgtest.Machine) { m.Forget(a) }},
	{
		"reject b",
		call("Reject", func(ctx context.Context, tr lkgtest.Tracker) error { return tr.Reject(ctx, b, "by hand") }),
	},
	{"promote", (*lkgtest.Machine).Promote},
	{"desired missing", desired(lkg.DesiredMissing)},
	{"desired correct", desired(lkg.DesiredCorrect)},
	{"desired unreachable", desired(lkg.DesiredUnreachable)},
}

const shortMoves = 10

// TestShortSequences plays every sequence of four of the first ten moves, or of three where a share is enough, and
// then starts.
func TestShortSequences(t *testing.T) {
	depth := 4
	if testing.Short() || raceshare.Step(t) > 1 {
		depth = 3
	}
	o := options()
	o.Limits = func(lkg.Ref) lkg.Limits { return lkg.Limits{Trial: time.Minute, ProbeDeadline: 20 * time.Second} }
	seq := make([]int, depth)
	n := 0
	for {
		playSequence(t, o, seq)
		n++
		i := 0
		for i < depth && seq[i] == shortMoves-1 {
			seq[i] = 0
			i++
		}
		if i == depth || t.Failed() {
			break
		}
		seq[i]++
	}
	t.Logf("%d sequences", n)
}

// TestShortOutages plays every sequence of four ends of a run, on a node where one config was promoted and another one
// is on trial or under suspicion. Then the faults stop, and what is wanted is used and promoted: no two rules wait for
// each other. C-36.
func TestShortOutages(t *testing.T) {
	ends := []move{
		{"crash", (*lkgtest.Machine).Crash}, {"crash alike", ended("")}, {"agent dies", ended(lkg.FaultSupervisor)},
		{"runtime away", ended(lkg.FaultEnvironment)}, {"reboot", (*lkgtest.Machine).Reboot},
		{"healthy, restart", func(m *lkgtest.Machine) {
			m.Healthy(70 * time.Second)
			m.Restart(lkg.CausePlanned)
		}},
	}
	depth := 4
	if testing.Short() || raceshare.Step(t) > 1 {
		depth = 3
	}
	o := options()
	o.Limits = func(lkg.Ref) lkg.Limits { return lkg.Limits{Trial: time.Minute, ProbeDeadline: 20 * time.Second} }
	all := 1
	for range depth {
		all *= len(ends)
	}
	for n := 0; n < all && !t.Failed(); n++ {
		m := lkgtest.NewMachine(t, o)
		m.Adopt(a)
		m.Start()
		m.Healthy(70 * time.Second)
		m.Adopt(b)
		m.Start()
		var names []string
		for i, rest := 0, n; i < depth; i, rest = i+1, rest/len(ends) {
			e := ends[rest%len(ends)]
			names = append(names, e.name)
			e.do(m)
			m.Start()
		}
		if comeTo(m); t.Failed() {
			t.Logf("ends: %s", strings.Join(names, ", "))
		}
	}
	t.Logf("%d sequences", all)
}

// comeTo: nothing ends a run any more. The wanted config, which never crashed by itself, is used and promoted in the
// end, unless it is listed as bad.
func comeTo(m *lkgtest.Machine) {
	s := m.Tracker().State()
	for i := 0; i < 4 && !(s.LastKnownGood.Same(b) && lkg.Settled(s)); i++ {
		m.Healthy(9 * time.Minute)
		m.Restart(lkg.CausePlanned)
		m.Start()
		s = m.Tracker().State()
	}
	m.Check(s.BadEntry(b) != nil || s.LastKnownGood.Same(b) && lkg.Settled(s),
		"last known good is %+v, case %+v (rule: when faults stop, the node settles on what is wanted)",
		s.LastKnownGood, s.Case)
}

func playSequence(t *testing.T, o lkgtest.Options, seq []int) {
	t.Helper()
	m := lkgtest.NewMachine(t, o)
	var names []string
	for _, i := range seq {
		names = append(names, moves[i].name)
		moves[i].do(m)
	}
	m.Start()
	if t.Failed() {
		t.Logf("sequence: %s", strings.Join(names, ", "))
	}
}

// TestRandomWalks plays long sequences of all moves, with kills at writes and damaged records in between. The seed of a
// failing walk is printed. L-CS-22.
func TestRandomWalks(t *testing.T) {
	walks := raceshare.Of(t, uint64(120))
	if testing.Short() {
		walks = min(walks, 30)
	}
	for seed := uint64(1); seed <= walks && !t.Failed(); seed++ {
		walk(t, seed)
	}
}

func walk(t *testing.T, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 0))
	m := lkgtest.NewMachine(t, options())
	var log []string
	for range 80 {
		mv := moves[rnd.IntN(len(moves))]
		switch rnd.IntN(20) {
		case 0:
			mv = damage(rnd)
		case 1, 2:
			at := m.Store.Writes() + 1 + rnd.IntN(3)
			m.Store.StopAt(at, lkgtest.Stop(rnd.IntN(2)))
			mv.name = fmt.Sprintf("%s, killed at write %d", mv.name, at)
		case 3, 4, 5, 6, 7:
			mv = moves[0]
		}
		log = append(log, mv.name)
		m.UntilKilled(func() { mv.do(m) })
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, strings.Join(log, "; "))
		}
	}
	if settle(m); t.Failed() {
		t.Fatalf("seed %d: %s; then the faults stop", seed, strings.Join(log, "; "))
	}
}

// settle: the faults stop, and a good config is wanted. It must be in use, and promoted, without anybody's help, and
// then nothing is written any more.
func settle(m *lkgtest.Machine) {
	m.Store.StopAt(0, lkgtest.StopFull)
	desired(lkg.DesiredCorrect)(m)
	m.Adopt(d)
	v := m.Start()
	m.Healthy(2 * time.Minute)
	state := m.Tracker().State()
	m.Check(v.Use.Same(d) && state.LastKnownGood.Same(d) && lkg.Settled(state),
		"uses %+v, last known good is %+v (rule: when faults stop, the node settles on what is wanted)",
		v.Use, state.LastKnownGood)
	writes := m.Store.Writes()
	m.Healthy(10 * time.Minute)
	m.Check(m.Store.Writes() == writes, "%d writes in ten settled minutes (rule: none)", m.Store.Writes()-writes)
}

func damage(rnd *rand.Rand) move {
	streams := []string{"current", "last-known-good", "planned-restart", "sync",
		"v1/bad-configs", "v1/startups", "v1/trial"}
	s := streams[rnd.IntN(len(streams))]
	return move{"damage " + s, func(m *lkgtest.Machine) { m.Damage(s) }}
}

// TestReasonNamesAFallback: R-CS-64. What is left in place of another config is not called the current one.
func TestReasonNamesAFallback(t *testing.T) {
	m := promotedTwice(t)
	m.Adopt(broken)
	if v := m.Start(); !v.Use.Same(b) {
		t.Fatalf("uses %+v, want b", v.Use)
	}
	p := m.Failing(30 * time.Second)
	want := `fallback (UID: uid-b), required probe "ready" failed for more than 20s`
	if p.Case == nil || p.Case.Reason != want || !p.Case.Probe {
		t.Errorf("the case is %+v, want the reason %s", p.Case, want)
	}
}
