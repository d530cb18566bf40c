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
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/rolloutstage"
	"github.com/belayproject/belay/internal/testenv"
)

// patience bounds each wait for something to happen, stamina each wait for a whole rollout.
const (
	patience = 2 * time.Minute
	stamina  = 20 * time.Minute
)

// A fleet is that of a scenario.
type fleet struct {
	*rolloutstage.Fleet
	processes []*rolloutstage.Process
}

// stage sets a fleet up, lets play play on it, and takes it down.
func stage(ctx context.Context, o rolloutstage.Options, play func(*fleet) error) (err error) {
	from := time.Now()
	setup, cancel := context.WithTimeout(ctx, stamina)
	defer cancel()
	made, err := rolloutstage.New(setup, o)
	if err != nil {
		return err
	}
	f := &fleet{Fleet: made}
	defer func() {
		for _, p := range f.processes {
			p.Kill()
		}
		err = errors.Join(err, f.Close())
	}()
	if o.Nodes == 0 {
		return play(f)
	}
	fmt.Fprintf(os.Stderr, "  %d nodes with %d pods each are there after %v\n", o.Nodes, o.PodsPerNode, time.Since(from).Round(time.Second))
	return play(f)
}

// spawn starts a controller whose caches are filled. It ends with the fleet.
func (f *fleet) spawn(ctx context.Context, task rolloutstage.Task) (*rolloutstage.Process, error) {
	p, err := f.Spawn(task)
	if err != nil {
		return nil, err
	}
	f.processes = append(f.processes, p)
	_, err = p.Await(ctx, rolloutstage.Ready, patience)
	return p, err
}

// completed waits until the rollout to a revision is over, and every node was given back.
func (f *fleet) completed(ctx context.Context, p *rolloutstage.Process, revision string) error {
	from := time.Now()
	for {
		err := f.Completed(ctx, revision)
		switch {
		case err == nil:
			fmt.Fprintf(os.Stderr, "  all nodes run %s after %v\n", revision, time.Since(from).Round(100*time.Millisecond))
			return nil
		case time.Since(from) > stamina:
			return fmt.Errorf("after %v: %w", stamina, err)
		}
		if err := p.Alive(); err != nil {
			return err
		}
		if !backoff.Sleep(ctx, 500*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// gauge measures from now on what the fleet and a controller take of the machine.
func (f *fleet) gauge(p *rolloutstage.Process) (*runner.Gauge, error) {
	return runner.NewGauge(map[string]int{
		"the API server": f.Env.APIServer().PID(), "etcd": f.Env.Server(testenv.Etcd).PID(), "the controller": p.PID(), "the agents' process": os.Getpid(),
	})
}

// sound returns an error if anything was seen that may never be: then no figure is worth anything.
func (f *fleet) sound() error {
	if wrong := f.Truth.Report().Wrong; len(wrong) > 0 {
		return fmt.Errorf("the rollout did what it never may: %q", wrong)
	}
	return nil
}
