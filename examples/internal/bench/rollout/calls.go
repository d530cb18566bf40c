// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/rolloutstage"
)

// The bars of R1.
const (
	callsBar   = 10  // control calls for a node
	callsRatio = 0.2 // of the peer's
)

// late is how long after the end of a rollout its last writes still count.
const late = 3 * time.Second

// A course is what one rollout has asked.
type course struct {
	controller, agents, peer *traffic
	crowd                    *traffic // agents whose revisions are configs
	took                     time.Duration
	failed                   int // drains of the peer
}

// calls is R1: with many nodes at a time, and with few, beside the peer.
func (b *bench) calls(ctx context.Context) error {
	many := rolloutstage.Options{
		Nodes: 100, Cap: 50, PodsPerNode: 20, Apps: 20, PodsEnd: 30 * time.Second, Verify: 6 * time.Second, Resident: true, AuditPolicy: auditPolicy,
	}
	few := many
	few.Nodes, few.Cap = 20, 5
	if b.Quick {
		many.Nodes, many.Cap, many.PodsEnd = 20, 10, 10*time.Second
		few.Nodes, few.Cap, few.PodsEnd = 6, 2, 10*time.Second
	}
	joining, ours, err := updated(ctx, many)
	if err != nil {
		return err
	}
	b.printCalls("R1.calls", callsBar, many, ours)
	b.printDrain("R1.drain", many, ours, nil)
	b.printJoining(many, joining)
	if _, ours, err = updated(ctx, few); err != nil {
		return err
	}
	b.printCalls("R1.few-calls", 0, few, ours)
	var peer course
	err = stage(ctx, few, func(f *fleet) error {
		peer, err = f.peerCourse(ctx)
		return err
	})
	if err != nil {
		return err
	}
	b.printDrain("R1.few-drain", few, ours, peer.peer)
	b.printTotal(few, ours, peer)
	return nil
}

// updated is our course on a fleet of its own.
func updated(ctx context.Context, o rolloutstage.Options) (joining, update course, err error) {
	err = stage(ctx, o, func(f *fleet) (err error) {
		joining, update, err = f.ourCourse(ctx)
		return err
	})
	return joining, update, err
}

// ourCourse first has the controller take up the nodes, which run v1 already, and then brings them to v2.
func (f *fleet) ourCourse(ctx context.Context) (joining, update course, err error) {
	p, err := f.spawn(ctx, rolloutstage.Task{})
	if err != nil {
		return joining, update, err
	}
	begun := time.Now()
	if err := f.Begin(ctx, "v1", nil); err != nil {
		return joining, update, err
	}
	if err := f.completed(ctx, p, "v1"); err != nil {
		return joining, update, err
	}
	backoff.Sleep(ctx, late)
	turned := time.Now()
	if err := f.Turn(ctx, "v2"); err != nil {
		return joining, update, err
	}
	if err := f.completed(ctx, p, "v2"); err != nil {
		return joining, update, err
	}
	took := time.Since(turned)
	backoff.Sleep(ctx, late)
	if joining, err = f.course(ctx, begun, turned); err != nil {
		return joining, update, err
	}
	if update, err = f.course(ctx, turned, time.Now()); err != nil {
		return joining, update, err
	}
	update.took = took
	if update.controller.control() == 0 || update.agents.control() == 0 {
		return joining, update, fmt.Errorf("the audit log has no request of the controller or of the agents: %+v", update)
	}
	return joining, update, f.sound()
}

func (f *fleet) course(ctx context.Context, from, until time.Time) (c course, err error) {
	all, err := f.traffics(ctx, from, until)
	c.controller, c.agents, c.peer = together(all, rolloutstage.ControllerAgent), together(all, rolloutstage.CrewAgent), together(all, peerAgent)
	c.crowd = together(all, crowdAgent)
	return c, err
}

// printCalls prints control calls. A bar of 0 is none.
func (b *bench) printCalls(name string, bar float64, o rolloutstage.Options, ours course) {
	n := o.Nodes
	control, about := each(ours.controller.control()+ours.agents.control(), n), ""
	if bar == 0 {
		about = fmt.Sprintf("no bar: %d is for many slots, as R1.calls has them; ", callsBar)
	}
	line := runner.Line{
		Name: name, Ours: runner.Show(control), Good: control <= bar,
		More: about + fmt.Sprintf("for each of %d nodes, %d at a time, with %d pods that take %v to end; controller %.2f: %s; agent %.2f: %s; "+
			"took %v; not counted: what drains ask, and in all %d watches that began anew",
			n, o.Cap, o.PodsPerNode, o.PodsEnd, each(ours.controller.control(), n), ours.controller.of(n), each(ours.agents.control(), n), ours.agents.of(n),
			ours.took.Round(time.Second), ours.controller.watches+ours.agents.watches),
	}
	if bar > 0 {
		line.Bar = runner.Show(bar)
	}
	b.Print(line)
}

// printDrain prints what drains have asked, beside the peer's if there is one.
func (b *bench) printDrain(name string, o rolloutstage.Options, ours course, peer *traffic) {
	n := o.Nodes
	about := func(t *traffic) string {
		return fmt.Sprintf("%.2f evictions, of which %.2f were refused, and %s", each(t.evictions, n), each(t.refused, n), list(t.looks, n))
	}
	line := runner.Line{
		Name: name, Ours: runner.Show(each(ours.controller.drain(), n)),
		More: fmt.Sprintf("what drains ask about pods, for each of %d nodes, %d at a time: %s", n, o.Cap, about(ours.controller)),
	}
	if peer != nil {
		line.Peer, line.Ratio = runner.Show(each(peer.drain(), n)), runner.Over(each(ours.controller.drain(), n), each(peer.drain(), n))
		line.More += "; peer: " + about(peer)
	}
	b.Print(line)
}

func (b *bench) printTotal(o rolloutstage.Options, ours, peer course) {
	n := o.Nodes
	total, theirs := each(ours.controller.total()+ours.agents.total(), n), each(peer.peer.total(), n)
	b.Print(runner.Line{
		Name: "R1.total", Ours: runner.Show(total), Peer: runner.Show(theirs), Ratio: runner.Over(total, theirs), Bar: runner.Show(callsRatio),
		Good: total <= callsRatio*theirs,
		More: fmt.Sprintf("R1.few-calls and R1.few-drain; took %v, peer %v, of whose drains %d failed and were begun again; peer's other calls: %s",
			ours.took.Round(time.Second), peer.took.Round(time.Second), peer.failed, peer.peer.of(n)),
	})
}

func (b *bench) printJoining(o rolloutstage.Options, joining course) {
	n := o.Nodes
	b.Print(runner.Line{
		Name: "R1.joining", Ours: runner.Show(each(joining.controller.control()+joining.agents.control(), n)),
		More: fmt.Sprintf("calls for each node that joins, once in its life, not among those above; controller: %s; agent: %s",
			joining.controller.of(n), joining.agents.of(n)),
	})
}
