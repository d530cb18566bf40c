// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/belayproject/belay/examples/internal/agent/connect"

	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/examples/internal/agent/update"
	"github.com/belayproject/belay/rollout/nodeagent"
)

// updates brings the node to what its shadow orders until ctx ends or the agent is asked to stop. It owns the state
// directory meanwhile.
func updates(ctx context.Context, s *settings.Update, own *parts) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := klog.FromContext(ctx)
	store, err := checkpoint.Open(s.StateDir, checkpoint.Options{
		OnDamage: func(d checkpoint.Damage) { log.Error(&d, "Set a record aside", "stateDir", s.StateDir) },
	})
	if err != nil {
		return fmt.Errorf("opening the state directory: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	updater, err := own.updaterFor(s.Hooks)
	if err != nil {
		return err
	}
	part, err := connect.Part(s, store, updater, nil)
	if err != nil {
		return err
	}
	log.Info("Started agent", "version", settings.Version(), "node", s.NodeName, "hooks", s.Hooks, "updater", s.Updater)
	return part.Run(ctx)
}

// enlist makes the syncer, and the node's part in rollouts where it takes one: that steers the syncer, or runs hooks
// beside it.
func (a *agent) enlist(ctx context.Context) (err error) {
	var updater nodeagent.Updater
	switch {
	case a.s.Source == settings.SourceShadow && a.store != nil:
		updater, err = a.steer(ctx)
	default:
		a.syncer, err = configsync.New(ctx, a.options)
	}
	if err == nil && a.s.Updates() {
		updater, err = a.own.updaterFor(a.s.Hooks)
	}
	if err != nil || updater == nil || a.store == nil {
		return err
	}
	a.part, err = connect.Part(a.s.Update(), a.store, updater, func(err error) {
		a.log.Error(err, "Takes no part in rollouts, looking again", "node", a.s.NodeName)
	})
	return err
}

// steer makes a syncer that is told by a rollout which config is wanted.
func (a *agent) steer(ctx context.Context) (nodeagent.Updater, error) {
	find, err := connect.Finder(a.s)
	if err != nil {
		return nil, err
	}
	steered, err := configsync.NewSteered(ctx, a.options, find)
	if err != nil {
		return nil, err
	}
	a.syncer = steered.Syncer
	return nodeagent.Config{Syncer: steered}.NewUpdater()
}

// updaterFor returns the program's own updater, or that of --hooks.
func (p *parts) updaterFor(dir string) (nodeagent.Updater, error) {
	if p.updater != nil {
		return p.updater, nil
	}
	u, err := update.Hooks(dir, os.Stderr)
	if err != nil {
		return nil, &settings.FlagError{Flag: "hooks", Value: dir, Want: "must be a directory of hooks: " + err.Error()}
	}
	return u, nil
}

// takePart takes part in rollouts from the first start of the child on. The child goes on without: what is in the way,
// such as another agent of the same node, is logged, and looked at again.
func (a *agent) takePart(ctx context.Context) {
	if a.part == nil {
		if a.s.Rollouts() {
			a.log.Error(a.trouble.records, "Takes no part in rollouts until a restart with a good state directory", "stateDir", a.s.StateDir)
		}
		return
	}
	select {
	case <-ctx.Done():
	case <-a.first.done:
		if err := a.part.Run(ctx); err != nil {
			a.log.Error(err, "Takes no part in rollouts until a restart", "node", a.s.NodeName)
		}
	}
}
