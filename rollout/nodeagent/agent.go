// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/belayproject/belay/internal/option"
)

// maxSteps bounds the steps of one pass; an attempt has fewer.
const maxSteps = 32

// An Agent takes the attempts of one node. Make it with [New].
type Agent struct {
	o    Options
	turn chan struct{} // full while a pass runs
	mind mind          // of whoever has the turn
}

// New returns an agent. It reads and writes nothing yet. The error names the option that is missing or wrong.
func New(o Options) (*Agent, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Agent{o: o, turn: make(chan struct{}, 1)}, nil
}

// Reconcile takes every step that can be taken now. It may take as long as Apply does, and not return at all where that reboots the
// node. node is the name of the shadow that the agent reads, as a queue has it; another name is an OptionError once the
// shadow was read.
// requeueAfter is when to call it again though the shadow has not changed; zero means not before. After an error it is
// to be called again, backing off.
func (a *Agent) Reconcile(ctx context.Context, node string) (requeueAfter time.Duration, err error) {
	if a == nil || a.turn == nil {
		return 0, option.NotMade("rollout/nodeagent.Agent.Reconcile", "rollout/nodeagent.New")
	}
	if err := option.CheckRequired("rollout/nodeagent.Agent.Reconcile", "node", node, "the name of the Node"); err != nil {
		return 0, err
	}
	return a.takeSteps(ctx, node)
}

// takeSteps is Reconcile. An empty node is whichever the shadow is of.
func (a *Agent) takeSteps(ctx context.Context, node string) (after time.Duration, err error) {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-a.turn }()
	for range maxSteps {
		after, done, err := a.step(ctx, node)
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case errors.Is(err, ErrConflict): // somebody has given an order: decide on that
		case err != nil:
			return 0, err
		case done:
			return after, nil
		}
	}
	return 0, fmt.Errorf("nodeagent: the shadow changes under each of %d steps: %w", maxSteps, ErrConflict)
}

// step looks, decides, and acts. done means that there is nothing more to do now.
func (a *Agent) step(ctx context.Context, node string) (after time.Duration, done bool, err error) {
	l, err := a.look(ctx)
	if err != nil {
		return 0, false, err
	}
	if l.online && node != "" && node != l.shadow.Node {
		check := option.For("rollout/nodeagent.Agent.Reconcile", nil)
		check.Wrong("node must be %q, whose shadow the agent reads, got %q", l.shadow.Node, node)
		return 0, false, check.Err()
	}
	if l.inherits() {
		if err := a.own(ctx, l.shadow); err != nil {
			return 0, false, err
		}
	}
	act := decide(l.view, time.Now())
	if act.act == wait {
		if err := a.keep(ctx, l, act.record); err != nil {
			return 0, false, err
		}
		if act.after == 0 {
			return 0, true, l.unreachable
		}
		return act.after, true, nil
	}
	return 0, false, a.do(ctx, l, act)
}

// A look is what there is to be seen.
type look struct {
	view
	version string // of the shadow
	known   record // what the disk holds
	// unreachable is why the shadow could not be read; nil where there is none.
	unreachable error
}

// look reads the disk, the shadow and the node. Without the disk, or without the node, nothing can be decided.
func (a *Agent) look(ctx context.Context) (l look, err error) {
	if l.known, err = a.load(ctx); err != nil {
		return l, err
	}
	l.shadow, l.version, err = a.read(ctx)
	if l.online = err == nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.unreachable = fmt.Errorf("nodeagent: reading the shadow: %w", err)
	}
	l.disk, l.mind = l.known, a.mind
	l.limits = limits{a.o.VerifyFor, a.o.VerifyEvery, a.o.VerifyWithin, a.o.ApplyTimeout, a.o.RevertBroken}
	l.seen, err = a.observe(ctx)
	return l, err
}

func (a *Agent) load(ctx context.Context) (record, error) {
	ctx, cancel := context.WithTimeout(ctx, a.o.CallTimeout)
	defer cancel()
	payload, err := a.o.Disk.Get(ctx, recordStream)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("nodeagent: reading the record %q: %w", recordStream, err)
	}
	r, err := decodeRecord(payload)
	if err != nil {
		return record{}, fmt.Errorf("nodeagent: %w", err)
	}
	return r, nil
}

func (a *Agent) read(ctx context.Context) (Shadow, string, error) {
	ctx, cancel := context.WithTimeout(ctx, a.o.CallTimeout)
	defer cancel()
	return a.o.Shadows.Read(ctx)
}

func (a *Agent) observe(ctx context.Context) (Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, a.o.CheckTimeout)
	defer cancel()
	seen, err := a.o.Updater.Observe(ctx)
	if err != nil {
		return seen, fmt.Errorf("nodeagent: observing the node: %w", err)
	}
	if seen.BootID == "" {
		return seen, errors.New("nodeagent: observing the node: the boot ID is empty")
	}
	return seen, nil
}

// keep puts a record that the disk does not have, such as one that was lost.
func (a *Agent) keep(ctx context.Context, l look, r record) error {
	if !l.online || r == l.known || r.Status.Report.Attempt == 0 {
		return nil
	}
	return a.put(ctx, r)
}

// put writes the record, also where the disk seems to hold it: the write before may not have been acknowledged.
func (a *Agent) put(ctx context.Context, r record) error {
	payload, err := r.encode()
	if err != nil {
		return fmt.Errorf("nodeagent: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, a.o.CallTimeout)
	defer cancel()
	if err := a.o.Disk.Put(ctx, recordStream, payload); err != nil {
		return fmt.Errorf("nodeagent: writing the record %q: %w", recordStream, err)
	}
	return nil
}

// store puts the record, and then the status in the shadow.
func (a *Agent) store(ctx context.Context, l look, r record) error {
	if err := a.put(ctx, r); err != nil {
		return err
	}
	if !l.online || r.Status == l.shadow.Status {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.o.CallTimeout)
	defer cancel()
	if err := a.o.Shadows.Store(ctx, r.Status, l.version); err != nil {
		return fmt.Errorf("nodeagent: storing the status: %w", err)
	}
	return nil
}
