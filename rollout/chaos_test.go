// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/raceshare"
	. "github.com/belayproject/belay/rollout" //nolint:revive // see fleet_test.go
	"github.com/belayproject/belay/rollout/protocol"
)

// A chaos is a fleet whose controllers plan on old snapshots, and die at any line. Each object has all its versions; every write is a
// compare-and-swap on the version that was read for it.
type chaos struct {
	*fleet
	r        *rand.Rand
	ledgers  []protocol.Ledger
	rollouts []rolloutObject
	shadows  map[string][]protocol.Shadow // by UID
	// applied is how often each node has applied something; acked says that a stop is acknowledged, and not lifted since.
	applied map[string]int
	acked   bool
	aborts  int
}

// A rolloutObject is what people want and what is remembered, in one object with one version.
type rolloutObject struct {
	verb     Verb
	progress Progress
}

// I1 to I9 under random schedules: controllers that read any past version of any object, that lose the race for each write, and that die between the
// ledger, the progress and each order; agents that move at any time; people who pause, abort and resume; from random states. When it is over, and one
// controller sees what is true, the end is that of an undisturbed rollout (I8, R-RO-20): each node runs the revision, and has applied it once.
func TestChaos(t *testing.T) {
	seeds := []uint64{rand.Uint64()}
	for i := range raceshare.Of(t, uint64(120)) {
		seeds = append(seeds, i)
	}
	aborts, stale := 0, 0
	for _, seed := range seeds {
		c := newChaos(t, rand.New(rand.NewPCG(seed, 9)))
		for range 400 {
			c.step()
		}
		aborts, stale = aborts+c.aborts, stale+len(c.ledgers)
		c.comeToRest(seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d aborts and pauses, %d versions of ledgers", aborts, stale)
}

func newChaos(t *testing.T, r *rand.Rand) *chaos {
	c := &chaos{fleet: randomFleet(t, r), r: r, shadows: map[string][]protocol.Shadow{}, applied: map[string]int{}}
	c.fails, c.p.Windows, c.p.LoseQuorum, c.p.StuckDrain = nil, nil, true, "Hold"
	c.p.Caps = []Cap{{Scope: Total, Max: number(1 + r.IntN(4))}, {Scope: ByZone, Max: number(1 + r.IntN(2))}}
	c.p.CommitWithin, c.p.ApplyWithin, c.p.VerifyWithin = time.Hour, 100*time.Hour, 100*time.Hour
	c.p.Detectors = []Detector{}
	c.passes(r.IntN(2) * r.IntN(30))
	c.begun = nil
	c.ledgers = []protocol.Ledger{c.s.Ledger}
	c.rollouts = []rolloutObject{{verb: c.p.Verb, progress: c.s.Progress}}
	for i := range c.s.Nodes {
		n := &c.s.Nodes[i]
		n.Drain.Empty = true
		c.shadows[n.UID] = []protocol.Shadow{*n.Shadow}
	}
	return c
}

// past is any version, the live one most often.
func past[T any](r *rand.Rand, all []T) int {
	if r.IntN(3) > 0 {
		return len(all) - 1
	}
	return len(all) - 1 - r.IntN(min(len(all), 12))
}

func (c *chaos) step() {
	switch c.r.IntN(12) {
	case 0, 1, 2, 3:
		c.controller(true)
	case 4:
		c.ask()
	case 5:
		c.now = c.now.Add(time.Duration(c.r.IntN(90)) * time.Second)
	default:
		c.moveAgent(&c.s.Nodes[c.r.IntN(len(c.s.Nodes))])
	}
}

func (c *chaos) ask() {
	if c.r.IntN(4) > 0 {
		return
	}
	do := []Do{Pause, Resume, Abort, Resume, Resume}[c.r.IntN(5)]
	o := c.rollouts[len(c.rollouts)-1]
	o.verb = Verb{Request: string(rune('a'+len(c.rollouts)%26)) + c.now.String(), Do: do}
	c.rollouts = append(c.rollouts, o)
	if do != Resume {
		c.aborts++
	}
}

// controller makes one pass on what it has read, old or not, as far as it comes.
func (c *chaos) controller(old bool) (d Decisions, done bool) {
	c.t.Helper()
	pick := func(n int) int {
		if !old {
			return n - 1
		}
		return past(c.r, make([]struct{}, n))
	}
	l, o := pick(len(c.ledgers)), pick(len(c.rollouts))
	s, p, read := c.s, c.p, map[string]int{}
	s.Ledger, s.Progress, p.Verb = c.ledgers[l], c.rollouts[o].progress, c.rollouts[o].verb
	s.Nodes = slices.Clone(c.s.Nodes)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		read[n.UID] = pick(len(c.shadows[n.UID]))
		sh := c.shadows[n.UID][read[n.UID]]
		n.Shadow, n.Runs = &sh, runs(c.shadows[n.UID][:read[n.UID]+1])
	}
	d, err := Plan(s, p, c.now)
	if err != nil {
		c.t.Fatal(err)
	}
	c.wantDecided(d, s)
	if c.dies(old) || !c.storeLedger(l, d) || c.dies(old) {
		return d, false
	}
	if o != len(c.rollouts)-1 {
		return d, false // a conflict: it has to plan anew
	}
	c.rollouts = append(c.rollouts, rolloutObject{verb: p.Verb, progress: d.Progress})
	if d.Acknowledged && c.ledgers[len(c.ledgers)-1].ClosedFor(c.p.UID) != nil && l == len(c.ledgers)-1 {
		c.acked = true
	}
	for _, n := range d.Nodes {
		if c.dies(old) {
			return d, false
		}
		c.order(n, d.Ledger, read[n.UID])
	}
	return d, true
}

// runs is what a node runs that has reported so.
func runs(reports []protocol.Shadow) protocol.Revision {
	r := protocol.Revision{Name: "v1", Digest: "sha256:v1"}
	for _, was := range reports {
		if p := was.Report.Phase; p == protocol.PhaseVerifying || p == protocol.PhaseDone {
			r = protocol.ParseRevision(was.Report.Revision)
		}
	}
	return r
}

func (c *chaos) dies(old bool) bool { return old && c.r.IntN(8) == 0 }

// storeLedger stores what was decided, if the ledger is the one that was read.
func (c *chaos) storeLedger(read int, d Decisions) bool {
	c.t.Helper()
	if read != len(c.ledgers)-1 {
		return encode(c.t, d.Ledger) == encode(c.t, c.ledgers[read]) // nothing to store: it goes on with what it has read
	}
	if encode(c.t, d.Ledger) == encode(c.t, c.ledgers[read]) {
		return true
	}
	c.wantLedger(c.ledgers[read], d)
	if d.Ledger.ClosedFor(c.p.UID) == nil {
		c.acked = false
	}
	c.ledgers = append(c.ledgers, d.Ledger)
	return true
}

// order writes an order on the version of the shadow that was read.
func (c *chaos) order(n Decision, l protocol.Ledger, read int) {
	all := c.shadows[n.UID]
	slot := l.Slot(n.UID)
	if n.Do == "" || read != len(all)-1 || slot == nil {
		return
	}
	f := fleet{t: c.t, s: Snapshot{Ledger: l}}
	orders, err := f.orders(all[read], n)
	if errors.Is(err, protocol.ErrRefused) {
		return // it was decided on an old ledger
	}
	if err != nil {
		c.t.Fatal(err)
	}
	sh := all[read]
	sh.Orders = orders
	c.write(n.UID, sh)
}

// moveAgent lets an agent do its next step, and checks what may not happen.
func (c *chaos) moveAgent(n *Node) {
	c.t.Helper()
	sh := c.shadows[n.UID][len(c.shadows[n.UID])-1]
	event := c.nextOf(n, sh)
	report, err := sh.Answer(event)
	if err != nil {
		return
	}
	if live := c.ledgers[len(c.ledgers)-1]; !report.Phase.AtRest() && live.Slot(n.UID) == nil {
		c.t.Fatalf("I1: node %q is %s and has no slot", n.Name, report.Phase)
	}
	if event == protocol.EventCommit && c.acked {
		c.t.Fatalf("I2: node %q commits attempt %d after the stop was acknowledged", n.Name, report.Attempt)
	}
	if event == protocol.EventApply {
		c.applied[n.Name]++
	}
	sh.Report = report
	c.write(n.UID, sh)
}

func (c *chaos) write(uid string, sh protocol.Shadow) {
	c.t.Helper()
	old := c.shadows[uid][len(c.shadows[uid])-1]
	if sh.Orders.Grant < old.Orders.Grant || sh.Orders.Revoked < old.Orders.Revoked || sh.Orders.Proceed < old.Orders.Proceed ||
		sh.Orders.Undo < old.Orders.Undo || sh.Report.Attempt < old.Report.Attempt {
		c.t.Fatalf("I3: a number gets smaller: %+v to %+v", old, sh)
	}
	c.shadows[uid] = append(c.shadows[uid], sh)
}
