// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// A seat is one machine of a control plane that is to be changed, and what its controller has seen of the others and not acted on yet.
type seat struct {
	m           machine.Machine
	seen, yield bool
	busy        string
}

// A round is several of them, each with a clock of its own.
type round []seat

func newRound(t *testing.T, n int) (r round) {
	for i := range n {
		m := newLife(t, "control-plane").v.Machine
		m.Name, m.UID = fmt.Sprint(i), fmt.Sprint("uid-", i)
		m.Spec.Config = []byte(`{"image":"b"}`)
		m.Phase, m.Step = machine.PhaseUpdating, machine.Step{Name: machine.StepPlanned, Since: noon}
		m.Update = &machine.Update{Digest: m.Spec.Digest(), Plan: provider.Plan{Method: provider.InPlace}, Since: noon, Slot: true}
		r = append(r, seat{m: m})
	}
	return r
}

func (r round) String() string {
	var s strings.Builder
	for _, at := range r {
		rank := 0 // it is who was first that counts
		for _, o := range r {
			if o.m.Step.Since.Before(at.m.Step.Since) {
				rank++
			}
		}
		fmt.Fprintf(&s, "%s %d %v %v;%v %v %q|", at.m.Step.Name, rank, at.m.Update.BackedUp, at.m.Spec.Paused, at.seen, at.yield, at.busy)
	}
	return s.String()
}

// sent is how many are past their turn.
func (r round) sent() (n int) {
	for _, at := range r {
		if _, sent := at.m.Changing(); sent {
			n++
		}
	}
	return n
}

// read is what a controller sees of the others; of an old list it may see nobody, as long as it has not claimed its turn.
func (r round) read(i int, old bool) round {
	next := append(round(nil), r...)
	at := &next[i]
	at.seen, at.busy, at.yield = true, "", false
	for j := range next {
		if why, yields := at.m.WaitsFor(next[j].m); !old && (why != "" && at.busy == "" || yields && !at.yield) {
			at.busy, at.yield = why, yields
		}
	}
	return next
}

// write is what it stores by that, after all that was stored before, by its own clock.
func (r round) write(t *testing.T, i int, clocks []time.Duration) round {
	var now time.Time
	for j, o := range r {
		if at := o.m.Step.Since.Add(time.Second - clocks[j]); at.After(now) {
			now = at
		}
	}
	next := append(round(nil), r...)
	at := &next[i]
	l := newLife(t, "control-plane")
	l.v.Machine, l.v.Now, l.v.Backup, l.v.Busy, l.v.Yield = at.m, now.Add(clocks[i]), false, at.busy, at.yield
	d := machine.Decide(l.v)
	if d.Action.Kind != machine.None {
		t.Fatalf("R-MA-13: %s is done at %v", d.Action.Kind, r)
	}
	at.m.Status = d.Status
	at.seen, at.busy, at.yield = false, "", false
	return next
}

// pause is what somebody does to a machine, or takes back. What its controller has seen by then it can't write by.
func (r round) pause(i int) round {
	next := append(round(nil), r...)
	next[i].m.Spec.Paused = !r[i].m.Spec.Paused
	next[i].seen, next[i].busy, next[i].yield = false, "", false
	return next
}

// resting means that nobody may go on.
func (r round) resting() bool {
	return !slices.ContainsFunc(r, func(at seat) bool { return !at.m.Spec.Paused })
}

// after are all rounds that one call leads to, and those that only an old list leads to, or somebody who pauses a machine: nobody's way on may rest on these. Pauses are
// tried where there are two machines.
func (r round) after(t *testing.T, clocks []time.Duration) (all, old []round) {
	for i, at := range r {
		_, sent := at.m.Changing()
		if !sent && len(r) == 2 {
			old = append(old, r.pause(i))
		}
		switch {
		case sent, at.m.Spec.Paused:
		case at.seen:
			all = append(all, r.write(t, i, clocks))
		default:
			all = append(all, r.read(i, false))
			if at.m.Step.Name != machine.StepBackup {
				old = append(old, r.read(i, true))
			}
		}
	}
	return all, old
}

// R-MA-13 and R-MA-27: machines of the control plane are changed one by one, without a backup too, however the reads and writes of their controllers mix, whatever their
// clocks say, and with lists that are old; and there is no way for them to wait for each other for ever.
func TestTurnsOfEveryInterleaving(t *testing.T) {
	for _, clocks := range [][]time.Duration{{0, 0}, {0, long}, {long, 0}, {0, 0, 0}, {0, long, 2 * long}, {2 * long, long, 0}} {
		first := newRound(t, len(clocks))
		from := map[string][]string{}
		open, known, ends := []round{first}, map[string]bool{first.String(): true}, []string(nil)
		for len(open) > 0 {
			r := open[len(open)-1]
			open = open[:len(open)-1]
			if n := r.sent(); n > 1 {
				t.Fatalf("R-MA-13: %d are changed at a time, with the clocks %v: %v", n, clocks, r)
			} else if n == 1 || r.resting() {
				ends = append(ends, r.String())
			}
			all, old := r.after(t, clocks)
			for _, next := range all {
				from[next.String()] = append(from[next.String()], r.String())
			}
			for _, next := range append(all, old...) {
				if key := next.String(); !known[key] {
					known[key] = true
					open = append(open, next)
				}
			}
		}
		good := map[string]bool{}
		for len(ends) > 0 {
			at := ends[len(ends)-1]
			if ends = ends[:len(ends)-1]; !good[at] {
				good[at] = true
				ends = append(ends, from[at]...)
			}
		}
		for at := range known {
			if !good[at] {
				t.Fatalf("R-MA-13: with the clocks %v nobody ever goes on from %v", clocks, at)
			}
		}
		t.Logf("clocks %v: %d states", clocks, len(known))
	}
}

// R-MA-13: a machine of the control plane that works is not changed while another one does not, and one that does not work is not kept from being mended.
func TestTheBrokenGoFirst(t *testing.T) {
	for name, c := range map[string]struct {
		me, other func(m *machine.Machine)
		waits     bool
	}{
		"all work":                  {},
		"one has failed":            {other: func(m *machine.Machine) { m.Phase = machine.PhaseFailed }, waits: true},
		"one starts":                {other: func(m *machine.Machine) { m.Phase = machine.PhaseJoining }, waits: true},
		"the Node of one is away":   {other: func(m *machine.Machine) { m.Step.Blocker = "the Node is not ready" }, waits: true},
		"one has no instance again": {other: func(m *machine.Machine) { m.Phase, m.Instance, m.Incarnation = machine.PhaseProvisioning, nil, 2 }, waits: true},
		"one was never made":        {other: func(m *machine.Machine) { m.Phase, m.Instance = machine.PhaseFailed, nil }},
		"one is retired":            {other: func(m *machine.Machine) { m.Phase, m.Instance = machine.PhaseRetired, nil }},
		"one is to end":             {other: func(m *machine.Machine) { m.Phase, m.Release = machine.PhaseDeleting, &machine.Release{} }},
		"the end of one has begun":  {other: func(m *machine.Machine) { m.Phase, m.Release = machine.PhaseDeleting, &machine.Release{Begun: true} }, waits: true},
		"a worker has failed":       {other: func(m *machine.Machine) { m.Phase, m.Spec.Roles = machine.PhaseFailed, []string{"worker"} }},
		"both have failed":          {me: func(m *machine.Machine) { m.Phase = machine.PhaseFailed }, other: func(m *machine.Machine) { m.Phase = machine.PhaseFailed }},
		"it is at its turn already": {me: func(m *machine.Machine) { m.Step.Name = machine.StepTurn }, other: func(m *machine.Machine) { m.Phase = machine.PhaseFailed }},
		"a change of one is planned": {other: func(m *machine.Machine) {
			m.Phase, m.Step.Name, m.Update = machine.PhaseUpdating, machine.StepPlanned, &machine.Update{}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			me, other := newLife(t, "control-plane").v.Machine, newLife(t, "control-plane").v.Machine
			other.Name, other.UID = "b", "uid-b"
			for f, m := range map[*func(m *machine.Machine)]*machine.Machine{&c.me: &me, &c.other: &other} {
				if *f != nil {
					(*f)(m)
				}
			}
			if why, yields := me.WaitsFor(other); (why != "") != c.waits || yields {
				t.Errorf("R-MA-13: it waits for %q, yields %v", why, yields)
			}
		})
	}
}
