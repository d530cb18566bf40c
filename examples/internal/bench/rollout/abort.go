// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// abortBar is that of R6.
const abortBar = time.Second

// A stop is how long an abort took, each from the moment at which the request was sent.
type stop struct{ acknowledged, aborted time.Duration }

// abort is R6.
func (b *bench) abort(ctx context.Context) error {
	o := rolloutstage.Options{Nodes: 5000, Cap: 50, Bare: true, Verify: 5 * time.Second, Spread: 5 * time.Second, Resident: true}
	aborts := 20
	if b.Quick {
		o.Nodes, o.Cap, o.Verify, o.Spread, aborts = 200, 10, time.Second, time.Second, 5
	}
	return stage(ctx, o, func(f *fleet) error {
		p, err := f.spawn(ctx, rolloutstage.Task{})
		if err != nil {
			return err
		}
		if err := f.Begin(ctx, "v1", nil); err != nil {
			return err
		}
		if err := f.completed(ctx, p, "v1"); err != nil {
			return err
		}
		gauge, err := f.gauge(p)
		if err != nil {
			return err
		}
		all, err := f.stops(ctx, aborts)
		if err != nil {
			return err
		}
		busy, err := gauge.Since()
		if err != nil {
			return err
		}
		b.printAbort(o, all, busy)
		return errors.Join(p.Alive(), f.sound())
	})
}

// A view is what was seen last of the rollout and of the ledger.
type view struct {
	seen    <-chan sighting
	rollout sighting
	epoch   int64
}

// until follows both until they are as wanted.
func (v *view) until(ctx context.Context, wanted func() bool) error {
	_, err := until(ctx, v.seen, patience, func(s sighting) bool {
		if s.resource == v1alpha1.RolloutsResource.Resource {
			v.rollout = s
		} else {
			v.epoch = s.number("spec", "epoch")
		}
		return v.rollout.object != nil && wanted()
	})
	if err != nil && v.rollout.object != nil {
		return fmt.Errorf("the rollout is %s: %s: %w", v.phase(), v.rollout.text("status", "message"), err)
	}
	return err
}

func (v *view) phase() rollout.Phase { return rollout.Phase(v.rollout.text("status", "phase")) }

func (v *view) handled(request string) bool {
	return v.rollout.text("status", "handledRequest") == request
}

// stops aborts a rollout and resumes it, again and again.
func (f *fleet) stops(ctx context.Context, aborts int) (all []stop, err error) {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	v := &view{}
	if v.seen, err = f.look(watching, v1alpha1.RolloutsResource, v1alpha1.DisruptionLedgersResource); err != nil {
		return nil, err
	}
	if err := f.Turn(ctx, "v2"); err != nil {
		return nil, err
	}
	for i := range aborts {
		before := v.epoch
		if err := v.until(ctx, func() bool { return v.phase() == rollout.Running && v.epoch >= before+int64(f.Cap)/2 }); err != nil {
			return nil, fmt.Errorf("before abort %d: %w", i+1, err)
		}
		s, err := f.stopped(ctx, v)
		if err != nil {
			return nil, fmt.Errorf("abort %d: %w", i+1, err)
		}
		fmt.Fprintf(os.Stderr, "  abort %d: acknowledged after %s, aborted after %s\n", i+1, runner.Show(s.acknowledged), runner.Show(s.aborted))
		all = append(all, s)
		request, err := f.Ask(ctx, v1alpha1.Verb{Do: v1alpha1.Do(rollout.Resume)})
		if err != nil {
			return nil, err
		}
		if err := v.until(ctx, func() bool { return v.handled(request) }); err != nil {
			return nil, fmt.Errorf("resuming: %w", err)
		}
		if refusal := v.rollout.text("status", "refusal"); refusal != "" {
			return nil, fmt.Errorf("resuming: %s", refusal)
		}
	}
	return all, nil
}

// stopped asks for an abort, and waits until no node is begun any more, and then until none is under way.
func (f *fleet) stopped(ctx context.Context, v *view) (s stop, err error) {
	at := time.Now()
	request, err := f.Ask(ctx, v1alpha1.Verb{Do: v1alpha1.Do(rollout.Abort)})
	if err != nil {
		return s, err
	}
	acknowledged := func() bool {
		return v.handled(request) && v.rollout.is("status", "acknowledged") && (v.phase() == rollout.Aborting || v.phase() == rollout.Aborted)
	}
	refused := func() bool { return v.handled(request) && v.rollout.text("status", "refusal") != "" }
	if err := v.until(ctx, func() bool { return acknowledged() || refused() }); err != nil {
		return s, err
	}
	if refused() {
		return s, fmt.Errorf("refused: %s", v.rollout.text("status", "refusal"))
	}
	s.acknowledged = v.rollout.at.Sub(at)
	if v.phase() != rollout.Aborted {
		err = v.until(ctx, func() bool { return acknowledged() && v.phase() == rollout.Aborted })
	}
	s.aborted = v.rollout.at.Sub(at)
	return s, err
}

func (b *bench) printAbort(o rolloutstage.Options, all []stop, busy string) {
	took := runner.Each(all, func(s stop) time.Duration { return s.acknowledged })
	ended := runner.Each(all, func(s stop) time.Duration { return s.aborted })
	b.Print(runner.Line{
		Name: "R6.acknowledged-p99", Ours: runner.Show(took.Quantile(0.99)), Bar: abortBar.String(), Good: len(took) > 0 && took.Quantile(0.99) < abortBar,
		More: fmt.Sprintf("from the request for an abort to the status that proves that no further node is begun; p50 %s, of %d aborts: "+
			"the p99 of fewer than 100 is the slowest; %d nodes, %d slots; %s", runner.Show(took.Median()), len(all), o.Nodes, o.Cap, busy),
	})
	b.Print(runner.Line{
		Name: "R6.aborted", Ours: ended.String(),
		More: fmt.Sprintf("to the phase Aborted, which waits for the nodes that had begun to apply; each verifies for %v to %v", o.Verify, o.Verify+o.Spread),
	})
}
