// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/examples/agent/admin"
	"github.com/belayproject/belay/examples/agent/kubeletpayload"
	"github.com/belayproject/belay/examples/agent/node"
	"github.com/belayproject/belay/examples/agent/render"
	"github.com/belayproject/belay/examples/agent/settings"
	"github.com/belayproject/belay/examples/agent/wire"
	"github.com/belayproject/belay/lkg"
)

// stopTimeout bounds the record of a planned stop: a disk that hangs must not keep the agent from ending.
const stopTimeout = 5 * time.Second

// An agent is the parts of one run.
type agent struct {
	s          *settings.Run
	log        klog.Logger
	file       *render.File
	store      *checkpoint.Store // nil without a state directory
	options    node.Options
	syncer     *configsync.Syncer[*kubeletpayload.Config]
	supervisor *restart.Supervisor
	inUse      atomic.Pointer[kubeletpayload.Config]
	chosen     chan struct{} // closed once the first start has chosen a config
	choose     sync.Once
}

// run supervises the child until ctx ends or the agent is asked to stop. It owns the state directory meanwhile.
func run(ctx context.Context, s *settings.Run) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	a := &agent{s: s, log: klog.FromContext(ctx), chosen: make(chan struct{})}
	if s.StateDir != "" {
		a.store, err = checkpoint.Open(s.StateDir, checkpoint.Options{
			OnDamage: func(d checkpoint.Damage) { a.log.Error(&d, "Set a record aside", "stateDir", s.StateDir) },
		})
		if err != nil {
			return fmt.Errorf("opening the state directory: %w", err)
		}
		defer func() { err = errors.Join(err, a.store.Close()) }()
	}
	if a.file, err = render.Open(s.Render); err != nil {
		return err
	}
	if err := a.join(ctx); err != nil {
		return err
	}
	a.log.Info("Started agent", "version", settings.Version(), "node", s.NodeName, "source", s.Source, "child", s.Child)
	return a.serve(ctx)
}

// join makes the syncer and the supervisor, each of which needs the other.
func (a *agent) join(ctx context.Context) (err error) {
	a.supervisor, err = restart.NewSupervisor(restart.Options{
		Command: a.prepare, Grace: a.s.Grace, BackoffMin: a.s.BackoffMin, BackoffMax: a.s.BackoffMax,
		OnExit: func(e lkg.Exit, planned bool) { a.log.Info("Child ended", "how", e.Detail, "planned", planned) },
	})
	if err != nil {
		return err
	}
	var store configsync.Store
	if a.store != nil { // a nil *checkpoint.Store would be a store
		store = a.store
	}
	if a.options, err = wire.Options(a.s, store, a.supervisor, a.inUse.Load); err != nil {
		return err
	}
	a.syncer, err = configsync.New(ctx, a.options)
	return err
}

// serve runs all parts until ctx ends, and the child last: its stop is on record as planned before it is stopped.
func (a *agent) serve(ctx context.Context) error {
	childCtx, stopChild := context.WithCancel(context.WithoutCancel(ctx))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer stopChild()
		err := a.sync(ctx)
		a.stopping(ctx)
		return err
	})
	g.Go(func() error {
		err := a.supervisor.Run(childCtx)
		if err == nil {
			a.stopping(ctx) // again, in case that a start came between the record and the stop
		}
		return err
	})
	if a.store != nil {
		g.Go(func() error {
			if err := a.administer(ctx); err != nil {
				a.log.Error(err, "Sub-commands can't reach this agent")
			}
			return nil // a node without them is better than none
		})
	}
	return g.Wait()
}

// sync keeps the node at the wanted config from the first start on.
func (a *agent) sync(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-a.chosen:
		return a.syncer.Run(ctx)
	}
}

// administer lets the sub-commands in.
func (a *agent) administer(ctx context.Context) error {
	socket, err := admin.Listen(a.s.StateDir)
	if err != nil {
		return err
	}
	return socket.Run(ctx, &node.Live{
		Name: a.s.NodeName, Source: a.s.Source, Started: time.Now(), Child: a.supervisor.PID,
		Records: a.store, Options: a.options, Syncer: a.syncer,
	})
}

// stopping records that the next start was planned. ctx has ended.
func (a *agent) stopping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := a.syncer.Stopping(ctx); err != nil {
		a.log.Error(err, "Stop is not on record, and may count against a config on trial")
	}
}

// prepare is one start of the child: the start goes on record, a config is chosen from disk, the node says so, and the child
// finds it where it reads it.
func (a *agent) prepare(ctx context.Context, last lkg.Exit) (*exec.Cmd, error) {
	active, err := a.syncer.Bootstrap(ctx, last)
	if err != nil {
		a.refused(ctx, err)
		return nil, err
	}
	a.log.Info("Chose config", "message", active.Verdict.Condition.Message, "reason", active.Verdict.Condition.Reason,
		"detail", active.Verdict.Detail, "uid", active.Ref.UID, "digest", active.Ref.Digest, "onTrial", active.Verdict.OnTrial)
	a.inUse.Store(active.Config)
	a.choose.Do(func() { close(a.chosen) })
	if err := a.syncer.Announce(ctx); err != nil {
		a.log.Error(err, "Config is not announced yet, starting all the same")
	}
	if err := a.ready(active); err != nil {
		a.log.Error(err, "Child can't be started, trying again")
		a.stopping(ctx) // what is in the way is no fault of the config
		return nil, err
	}
	cmd := exec.Command(a.s.Child[0], a.s.Child[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd, nil
}

// ready renders the config and sees that there is a program to read it.
func (a *agent) ready(active configsync.Active[*kubeletpayload.Config]) error {
	if err := a.file.Write([]byte(active.Object.Data[active.Key])); err != nil {
		return err
	}
	_, err := exec.LookPath(a.s.Child[0])
	return err
}

// refused tells the node's condition why nothing is started.
func (a *agent) refused(ctx context.Context, err error) {
	a.log.Error(err, "No config may be used")
	status, ok := wire.Refusal(ctx, a.options)
	if !ok || a.options.Reporter == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := a.options.Reporter.Report(ctx, status); err != nil {
		a.log.Error(err, "Refusal is not reported")
	}
}
