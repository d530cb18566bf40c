// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/rolloutstage"
)

// idleReads is the bar of R2: for each replica and minute.
const idleReads = 1

// idle is R2.
func (b *bench) idle(ctx context.Context) error {
	o := rolloutstage.Options{Nodes: 20, Cap: 5, PodsPerNode: 5, Verify: time.Second, Resident: true, AuditPolicy: auditPolicy}
	window := 10 * time.Minute
	if b.Quick {
		o.Nodes, window = 6, time.Minute
	}
	return stage(ctx, o, func(f *fleet) error {
		all, err := f.rest(ctx, window)
		if err != nil {
			return err
		}
		b.printIdle(o, window, all)
		return f.sound()
	})
}

// rest completes a rollout with two replicas of the controller, of which one leads, and lets time go by.
func (f *fleet) rest(ctx context.Context, window time.Duration) (map[string]*traffic, error) {
	lead := func(holder string) (*rolloutstage.Process, error) {
		return f.spawn(ctx, rolloutstage.Task{Lease: "leader", Holder: holder, LeaseFor: 15 * time.Second})
	}
	first, err := lead("first")
	if err != nil {
		return nil, err
	}
	if _, err := first.Await(ctx, rolloutstage.Leads, patience); err != nil {
		return nil, err
	}
	if _, err := lead("second"); err != nil {
		return nil, err
	}
	if err := f.Begin(ctx, "v2", nil); err != nil {
		return nil, err
	}
	if err := f.completed(ctx, first, "v2"); err != nil {
		return nil, err
	}
	backoff.Sleep(ctx, late)
	from := time.Now()
	if !backoff.Sleep(ctx, window) {
		return nil, ctx.Err()
	}
	if err := first.Alive(); err != nil {
		return nil, err
	}
	all, err := f.traffics(ctx, from, time.Now())
	if err == nil && together(all, rolloutstage.ControllerAgent).leases == 0 {
		err = fmt.Errorf("the audit log does not even have the requests for the Lease: %+v", all)
	}
	return all, err
}

func (b *bench) printIdle(o rolloutstage.Options, window time.Duration, all map[string]*traffic) {
	controllers, agents := together(all, rolloutstage.ControllerAgent), together(all, rolloutstage.CrewAgent)
	what := fmt.Sprintf("in %v after a rollout of %d nodes", window, o.Nodes)
	writes := controllers.writes + agents.writes
	b.Print(runner.Line{
		Name: "R2.writes", Ours: fmt.Sprint(writes), Bar: "0", Good: writes == 0,
		More: fmt.Sprintf("%s; all that was asked: controllers: %s; agents: %s; not counted: %d requests for the Lease, "+
			"%d watches that the client library began anew", what, controllers.of(1), agents.of(1), controllers.leases, controllers.watches+agents.watches),
	})
	reads, replicas := 0.0, 0
	for agent, t := range all {
		if strings.HasPrefix(agent, rolloutstage.ControllerAgent) {
			reads, replicas = max(reads, float64(t.reads+t.looked())/window.Minutes()), replicas+1
		}
	}
	b.Print(runner.Line{
		Name: "R2.reads-controller", Ours: runner.Show(reads), Bar: runner.Show(float64(idleReads)), Good: reads <= idleReads,
		More: fmt.Sprintf("a minute, of the replica that reads most of %d; %s", replicas, what),
	})
	mean := each(agents.reads, o.Nodes) / window.Minutes()
	b.Print(runner.Line{
		Name: "R2.reads-agent", Ours: runner.Show(mean), Bar: runner.Show(float64(idleReads)), Good: mean <= idleReads,
		More: fmt.Sprintf("a minute, of each of %d agents in the mean; %s", o.Nodes, what),
	})
}
