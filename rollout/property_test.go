// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/belayproject/belay/internal/raceshare"
	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// Random rollouts over random fleets, in which agents fail, refuse and fall silent, nodes join and leave, caps move, and people ask for things. In
// every pass: each cap holds on the ledger for what was admitted, no slot is taken back but by a fact (I11), the counts add up (I7), no node of a
// later stage is begun before the stages before it were passed (I6, R-RO-16), nothing is admitted after a freeze (I5) or outside the windows (I13), the
// input is not changed, and the same input gives the same bytes (I10, R-RO-30), also by a planner that was asked before.
// S-CS-10.
func TestRandomRollouts(t *testing.T) {
	seeds := []uint64{rand.Uint64()}
	for i := range raceshare.Of(t, uint64(60)) {
		seeds = append(seeds, i)
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			f := randomFleet(t, r)
			for range 120 {
				f.disturb(r)
				f.propertyPass(r)
			}
		})
	}
}

func randomFleet(t *testing.T, r *rand.Rand) *fleet {
	f := newFleet(t, 0)
	for range 4 + r.IntN(20) {
		f.join(r)
	}
	pool := func(s string) labels.Selector { return labels.SelectorFromSet(labels.Set{"pool": s}) }
	f.p.Groups = []Group{{Name: "a", Selector: pool("a")}, {Name: "b", Selector: pool("b")}, {Name: "c", Selector: labels.Everything()}}
	f.s.Nodes[0].Labels["pool"], f.s.Nodes[1].Labels["pool"], f.s.Nodes[2].Labels["pool"] = "a", "b", "c"
	f.p.Stages = [][]Stage{
		nil,
		{{Name: "canary", Size: size(1 + r.IntN(3))}, {Name: "all", Soak: time.Minute}},
		{{Name: "first", Groups: []string{"a"}}, {Name: "half", Size: percent("50%")}, {Name: "all"}},
		{{Name: "a", Groups: []string{"b"}}, {Name: "b", Groups: []string{"a", "c"}}},
	}[r.IntN(4)]
	f.moveCaps(r)
	if r.IntN(3) == 0 {
		f.p.Windows, f.p.Cycle = []Window{{Open: 11 * time.Hour, Close: 12*time.Hour + 12*time.Minute}}, 2*time.Minute
	}
	f.p.RetryAfter, f.p.ApplyWithin, f.p.VerifyWithin, f.p.CommitWithin = 10*time.Second, 2*time.Minute, 2*time.Minute, time.Minute
	f.p.StuckDrain, f.p.DrainWithin = []StuckDrain{"Hold", UndoDrain, ForceDrain}[r.IntN(3)], 2*time.Minute
	f.p.Detectors = []Detector{twoFailures{}}
	if r.IntN(3) == 0 {
		f.p.Critical = labels.SelectorFromSet(labels.Set{zone: "x"})
	}
	rate := r.IntN(30)
	f.fails = func(string, string) protocol.Event {
		switch n := r.IntN(100); {
		case n < rate/2:
			return protocol.EventBroke
		case n < rate:
			return protocol.EventFellBack
		}
		return ""
	}
	return f
}

func (f *fleet) join(r *rand.Rand) {
	name := fmt.Sprintf("n%04d", r.IntN(10000))
	if slices.ContainsFunc(f.s.Nodes, func(n Node) bool { return n.Name == name }) {
		return
	}
	l := map[string]string{zone: string("xyz"[r.IntN(3)]), "pool": string("abc"[r.IntN(3)])}
	if r.IntN(6) == 0 {
		l[controlPlane] = ""
	}
	f.add(name, l)
}

func (f *fleet) moveCaps(r *rand.Rand) {
	f.p.Caps = []Cap{{Scope: Total, Max: number(1 + r.IntN(6))}, {Scope: ByZone, Max: number(1 + r.IntN(3))}}
	if r.IntN(2) == 0 {
		f.p.Caps = append(f.p.Caps, Cap{Scope: ByGroup, Key: "c", Max: *percent(fmt.Sprintf("%d%%", 1+r.IntN(100)))})
	}
}

// disturb changes the world a little.
func (f *fleet) disturb(r *rand.Rand) {
	n := &f.s.Nodes[r.IntN(len(f.s.Nodes))]
	switch r.IntN(40) {
	case 0, 1:
		f.silent[n.Name] = !f.silent[n.Name]
	case 2:
		f.stuck[n.Name] = !f.stuck[n.Name]
	case 3:
		f.refusing[n.Name] = !f.refusing[n.Name]
	case 4:
		n.Away = []string{"", "", "not ready"}[r.IntN(3)]
	case 5:
		n.Health.Answer = []Answer{Allow, Allow, Deny, Unknown}[r.IntN(4)]
	case 6, 7:
		f.join(r)
	case 8:
		if len(f.s.Nodes) > 3 {
			f.remove(n.Name)
		}
	case 9, 10:
		f.moveCaps(r)
	case 11, 12, 13:
		f.ask(r, n.Name)
	case 14:
		f.p.Target = revision(fmt.Sprintf("v%d", 2+r.IntN(3)))
	case 15:
		f.s.Gates = []Verdict{{From: "gate", Answer: []Answer{Allow, Allow, Deny}[r.IntN(3)]}}
	case 16:
		sh := protocol.NewShadow(n.Name, n.UID, f.s.Ledger)
		n.Shadow = &sh
	}
}

func (f *fleet) ask(r *rand.Rand, node string) {
	do := []Do{Pause, Resume, Resume, Abort, Resume, Accept, Accept, Promote, Acknowledge}[r.IntN(9)]
	f.p.Verb = Verb{Request: fmt.Sprintf("r%d", r.Uint64()), Do: do}
	if do == Acknowledge {
		f.p.Verb.Node = node
	}
}

func (f *fleet) propertyPass(r *rand.Rand) {
	f.t.Helper()
	before, ledger := encode(f.t, f.s), f.s.Ledger
	d, err := Plan(f.s, f.p, f.now)
	var invalid *FieldError
	if err != nil {
		if !errors.As(err, &invalid) {
			f.t.Fatal(err)
		}
		f.p.Target = revision("v2") // a stage has no nodes when it would begin anew
		f.join(r)
		return
	}
	if after := encode(f.t, f.s); after != before {
		f.t.Fatalf("the input was changed from\n%s\nto\n%s", before, after)
	}
	shuffled := f.s
	shuffled.Nodes = slices.Clone(f.s.Nodes)
	r.Shuffle(len(shuffled.Nodes), func(i, j int) { shuffled.Nodes[i], shuffled.Nodes[j] = shuffled.Nodes[j], shuffled.Nodes[i] })
	again, err := Plan(shuffled, f.p, f.now)
	if a, b := encode(f.t, d), encode(f.t, again); err != nil || a != b {
		f.t.Fatalf("I10: decided\n%s\nand with the nodes in another order\n%s\n%v", a, b, err)
	}
	f.asked.wantSame(f, d)
	f.wantCaps(ledger, d)
	f.wantSlotsKept(ledger, d)
	f.wantAllowed(d)
	f.wantPassed(d)
	f.wantOrder(d)
	f.wantFrozen(d)
	f.pass()
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wantCaps counts anew what is away after each admission of a pass.
func (f *fleet) wantCaps(before protocol.Ledger, d Decisions) {
	f.t.Helper()
	for _, c := range slices.Concat(d.Caps, []protocol.Cap{{Key: "serial", Max: 1}}) {
		away, admitted := map[string]bool{}, false
		for _, s := range d.Ledger.Slots {
			if c.Key == "" || slices.Contains(s.Keys, c.Key) {
				away[s.UID] = true
				admitted = admitted || before.Slot(s.UID) == nil
			}
		}
		for _, n := range f.s.Nodes {
			if n.Away != "" && (c.Key == "" || c.Key == "zone/"+n.Labels[zone]) {
				away[n.UID] = true
			}
		}
		if admitted && len(away) > c.Max {
			f.t.Fatalf("%d nodes of %q are away after an admission, want %d: %v", len(away), c.Key, c.Max, d.Ledger.Slots)
		}
	}
}

func (f *fleet) wantSlotsKept(before protocol.Ledger, d Decisions) {
	f.t.Helper()
	for _, s := range before.Slots {
		if d.Ledger.Slot(s.UID) != nil || f.p.Verb.Do == Acknowledge && f.p.Verb.Node == s.Node {
			continue
		}
		if _, err := before.Release(*f.node(s.Node).Shadow); err != nil || f.of(d, s.Node).Do != protocol.EventRelease {
			f.t.Fatalf("I11: the slot of %q was taken back: %v", s.Node, err)
		}
	}
}

func (f *fleet) wantAllowed(d Decisions) {
	f.t.Helper()
	admitted := doing(d, protocol.EventAdmit)
	f.wantInWindow(d)
	if len(admitted) == 0 {
		return
	}
	if c := d.Ledger.ClosedFor(f.p.UID); c != nil || slices.Contains([]Phase{Paused, Frozen, Aborting, Aborted}, d.Phase) {
		f.t.Fatalf("I5: %v admitted while %s, closed by %v", admitted, d.Phase, c)
	}
	for _, n := range d.Nodes {
		if n.Do == protocol.EventAdmit && int(n.Stage) > min(d.Progress.Stage, max(0, len(f.p.Stages)-1)) && slices.Contains(d.Progress.Members, n.UID) {
			f.t.Fatalf("I6: node %q of stage %d is begun in stage %d", n.Node, n.Stage, d.Progress.Stage)
		}
	}
	stage := min(d.Progress.Stage, len(f.p.Stages)-1)
	if stage < 0 {
		return
	}
	for _, name := range admitted {
		n := f.of(d, name)
		group := f.p.Groups[n.Group].Name
		reached := slices.ContainsFunc(f.p.Stages[:stage+1], func(s Stage) bool { return len(s.Groups) == 0 || slices.Contains(s.Groups, group) })
		if !reached && slices.Contains(d.Progress.Members, n.UID) {
			f.t.Fatalf("I6: node %q of group %q is begun in stage %d", name, group, stage)
		}
	}
}

// In a fair world every rollout without failures is completed, and every node was begun once (I9).
func TestFairRolloutsAreCompleted(t *testing.T) {
	for seed := range raceshare.Of(t, uint64(40)) {
		r := rand.New(rand.NewPCG(seed, 2))
		f := randomFleet(t, r)
		f.fails, f.p.Windows, f.p.LoseQuorum = nil, nil, true
		n := len(f.s.Nodes)
		f.passes(40*n+100, Completed)
		times := map[string]int{}
		for _, node := range f.begun {
			times[node]++
		}
		if f.runs("v2") != n || len(times) != n || slices.Max(slices.Collect(maps.Values(times))) != 1 {
			t.Errorf("seed %d: %d of %d nodes run v2, begun %v", seed, f.runs("v2"), n, f.begun)
		}
	}
}
