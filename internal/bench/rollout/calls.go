// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/belayproject/belay/internal/bench/runner"
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
	took                     time.Duration
	failed                   int // drains of the peer
}

// calls is R1.
func (b *bench) calls(ctx context.Context) error {
	o := rolloutstage.Options{
		Nodes: 20, Cap: 5, PodsPerNode: 20, Apps: 20, PodsEnd: 30 * time.Second, Verify: 6 * time.Second, Resident: true, AuditPolicy: auditPolicy,
	}
	if b.Quick {
		o.Nodes, o.Cap, o.PodsEnd = 6, 2, 10*time.Second
	}
	var joining, ours, peer course
	err := stage(ctx, o, func(f *fleet) (err error) {
		joining, ours, err = f.ourCourse(ctx)
		return err
	})
	if err != nil {
		return err
	}
	err = stage(ctx, o, func(f *fleet) (err error) {
		peer, err = f.peerCourse(ctx)
		return err
	})
	if err != nil {
		return err
	}
	b.printCalls(o, joining, ours, peer)
	return nil
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
	pause(ctx, late)
	turned := time.Now()
	if err := f.Turn(ctx, "v2"); err != nil {
		return joining, update, err
	}
	if err := f.completed(ctx, p, "v2"); err != nil {
		return joining, update, err
	}
	took := time.Since(turned)
	pause(ctx, late)
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
	return c, err
}

func (b *bench) printCalls(o rolloutstage.Options, joining, ours, peer course) {
	n := o.Nodes
	control := each(ours.controller.control()+ours.agents.control(), n)
	b.Print(runner.Line{
		Name: "R1.calls", Ours: runner.Show(control), Bar: runner.Show(float64(callsBar)), Good: control <= callsBar,
		More: fmt.Sprintf("for each of %d nodes, %d at a time, with %d pods that take %v to end; controller %.2f: %s; agent %.2f: %s; "+
			"not counted: what drains ask, and in all %d watches that began anew",
			n, o.Cap, o.PodsPerNode, o.PodsEnd, each(ours.controller.control(), n), ours.controller.of(n), each(ours.agents.control(), n), ours.agents.of(n),
			ours.controller.watches+ours.agents.watches),
	})
	b.Print(runner.Line{
		Name: "R1.drain", Ours: runner.Show(each(ours.controller.drain(), n)), Peer: runner.Show(each(peer.peer.drain(), n)),
		Ratio: runner.Over(each(ours.controller.drain(), n), each(peer.peer.drain(), n)),
		More: fmt.Sprintf("what a drain asks for each node: %.2f evictions, of which %.2f were refused, and %s; peer: %.2f, %.2f and %s",
			each(ours.controller.evictions, n), each(ours.controller.refused, n), list(ours.controller.looks, n),
			each(peer.peer.evictions, n), each(peer.peer.refused, n), list(peer.peer.looks, n)),
	})
	total, theirs := each(ours.controller.total()+ours.agents.total(), n), each(peer.peer.total(), n)
	b.Print(runner.Line{
		Name: "R1.total", Ours: runner.Show(total), Peer: runner.Show(theirs), Ratio: runner.Over(total, theirs), Bar: runner.Show(callsRatio),
		Good: total <= callsRatio*theirs,
		More: fmt.Sprintf("R1.calls and R1.drain; took %v, peer %v, of whose drains %d failed and were begun again; peer's other calls: %s",
			ours.took.Round(time.Second), peer.took.Round(time.Second), peer.failed, peer.peer.of(n)),
	})
	b.Print(runner.Line{
		Name: "R1.joining", Ours: runner.Show(each(joining.controller.control()+joining.agents.control(), n)),
		More: fmt.Sprintf("calls for each node that joins, once in its life, not among those above; controller: %s; agent: %s",
			joining.controller.of(n), joining.agents.of(n)),
	})
}
