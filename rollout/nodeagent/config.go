// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/compat"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/rollout/protocol"
)

// A ConfigSyncer brings one process to a config: a checkpoint first, then a restart, a trial, and by itself the way
// back to the last known good config. One of package configsync is configsync.Steered. Configs are spelled
// "name@digest", as [protocol.Revision] does; empty is the local config that the node came with.
type ConfigSyncer interface {
	// Configs returns the config in use, the one that would be gone back to, and the suspect: the wanted config, while it
	// is open whether it is to blame for what happened. It may be in use, or be left for another one and used again later.
	// There is none if that is empty. An error means that nothing is in use yet.
	Configs(ctx context.Context) (inUse, lastKnownGood, suspect string, err error)
	// Adopt makes a config the wanted one. It returns when that is recorded; the restart, of this very process even, comes
	// by itself. A config that is wanted already changes nothing, one that is listed as bad is an error. An error with a
	// method Temporary() bool that returns true says nothing about the config, but that a server is away, for one: Adopt
	// is called again. Any other one fails the attempt.
	Adopt(ctx context.Context, config string) error
	// Judge says whether a config has passed its trial, or was found to be bad, and why, in one sentence. Neither means
	// that it is still open.
	Judge(ctx context.Context, config string) (good, bad bool, why string, err error)
	// GoBack leaves a config that is in use for the last known good one, and lists it as bad for that reason.
	GoBack(ctx context.Context, config, reason string) error
}

// Config makes an [Updater] over a config syncer: an attempt's revision is a config.
type Config struct {
	// Syncer does the work.
	Syncer ConfigSyncer
	// Boot is the ID of the node's boot. Nil means [BootID].
	Boot func() (string, error)
	// Every is the time between two looks at a config that is being taken up, and until Adopt is called again, which then
	// waits longer and longer, up to 8 times that. Zero means 1 second.
	Every time.Duration
}

// NewUpdater returns the updater. The error says that Syncer is missing.
func (c Config) NewUpdater() (Updater, error) {
	if c.Syncer == nil {
		return nil, errors.New("nodeagent: Config.Syncer is required, see configsync.NewSteered")
	}
	return configUpdater{c}, nil
}

// A configUpdater is the [Updater], [Preflighter] and [Disrupter] of a Config.
type configUpdater struct{ Config }

// Reasons of [Config]: OnTrial, Suspected and ConfigBad from the syncer's trial, NotInUse, and ConfigForbidden by the
// node's policy.
const (
	reasonConfigBad = "ConfigBad" // the syncer has found it to be bad
	reasonOnTrial   = "OnTrial"   // it is in use, and nothing is wrong so far
	reasonSuspected = "Suspected" // another one is in use, to find out whether it is to blame
	reasonNotInUse  = "NotInUse"  // another one is in use

	reasonConfigForbidden = "ConfigForbidden" // the node's policy forbids the change
)

// Observe implements [Updater].
func (c configUpdater) Observe(ctx context.Context) (o Observation, err error) {
	inUse, good, suspect, err := c.Syncer.Configs(ctx)
	if err != nil {
		return o, fmt.Errorf("asking which config is in use: %w", err)
	}
	boot := c.Boot
	if boot == nil {
		boot = BootID
	}
	if o.BootID, err = boot(); err != nil {
		return o, err
	}
	o.Current = named(inUse)
	if suspect != "" {
		o.Suspect = named(suspect)
	}
	if good != inUse || suspect != "" {
		o.Previous, o.CanRevert = named(good), true
	}
	return o, nil
}

// withdrawTime bounds how long it takes to give up a config.
const withdrawTime = 10 * time.Second

// localConfig is the name of the config that the node came with.
const localConfig = "local"

func named(config string) protocol.Revision {
	if config == "" {
		return protocol.Revision{Name: localConfig}
	}
	return protocol.ParseRevision(config)
}

func spelled(r protocol.Revision) string {
	if r.Name == localConfig {
		return ""
	}
	return r.String()
}

// Prepare implements [Updater]. A config is small: there is nothing to fetch ahead.
func (c configUpdater) Prepare(context.Context, protocol.Revision) error { return nil }

// Apply implements [Updater]: it returns when the config is in use, or was found to be bad. A server that is away is
// waited for: it is no failure of the node. A config that is neither when the time is over is not wanted any more, so
// that it is not taken up later, without an attempt.
func (c configUpdater) Apply(ctx context.Context, a Attempt) error {
	err := c.adopt(ctx, a.Revision)
	if err == nil {
		err = c.await(ctx, a.Revision)
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errors.Join(err, c.withdraw(ctx))
	}
	return err
}

// adopt has a config adopted, and goes on while nothing is known of it.
func (c configUpdater) adopt(ctx context.Context, r protocol.Revision) error {
	for wait := c.every(); ; wait = backoff.Next(wait, c.every(), adoptSlowest*c.every()) {
		err := c.Syncer.Adopt(ctx, spelled(r))
		if err == nil {
			return nil
		}
		err = fmt.Errorf("adopting config %q: %w", r, err)
		if t, ok := compat.AsType[temporary](err); !ok || !t.Temporary() {
			return err
		}
		klog.FromContext(ctx).Info("Config can't be adopted yet", "config", r, "err", err, "again", wait)
		t := time.NewTimer(jittered(wait))
		select {
		case <-ctx.Done():
			t.Stop()
			return errors.Join(err, ctx.Err())
		case <-t.C:
		}
	}
}

// temporary is an error of [ConfigSyncer.Adopt] that says nothing about the config.
type temporary interface {
	error
	Temporary() bool
}

// adoptSlowest bounds the time between two calls of Adopt, in times of Config.Every.
const adoptSlowest = 8

func (c configUpdater) every() time.Duration {
	if c.Every <= 0 {
		return time.Second
	}
	return c.Every
}

// withdraw makes the config that is in use the wanted one.
func (c configUpdater) withdraw(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
	defer cancel()
	inUse, _, _, err := c.Syncer.Configs(ctx)
	if err == nil {
		err = c.Syncer.Adopt(ctx, inUse)
	}
	if err != nil {
		return fmt.Errorf("making the config in use the wanted one again: %w", err)
	}
	return nil
}

// Verify implements [Updater]: the syncer's own trial decides.
func (c configUpdater) Verify(ctx context.Context, a Attempt) (Health, error) {
	inUse, _, suspect, err := c.Syncer.Configs(ctx)
	if err != nil {
		return Health{}, fmt.Errorf("asking which config is in use: %w", err)
	}
	used, config := a.Revision.Is(named(inUse)), inUse
	suspected := suspect != "" && a.Revision.Is(named(suspect))
	if !used {
		config = spelled(a.Revision) // why it is not
	}
	good, bad, said, err := c.Syncer.Judge(ctx, config)
	switch {
	case err != nil:
		return Health{}, fmt.Errorf("asking about config %q: %w", config, err)
	case bad:
		return Health{Verdict: Fail, Reason: reasonConfigBad, Message: said}, nil
	case suspected && !used:
		return Health{Verdict: NotYet, Reason: reasonSuspected, Message: said}, nil
	case !used:
		return Health{Verdict: Fail, Reason: reasonNotInUse, Message: fmt.Sprintf("config %q is in use, want %q", inUse, a.Revision)}, nil
	case good:
		return Health{Verdict: Pass}, nil
	}
	return Health{Verdict: NotYet, Reason: reasonOnTrial, Message: said}, nil
}

// Revert implements [Updater]. A config can be taken up again unless it was found to be bad.
func (c configUpdater) Revert(ctx context.Context, a Attempt) error {
	inUse, good, suspect, err := c.Syncer.Configs(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("asking which config is in use: %w", err)
	case suspect == "" && a.Revision.Is(named(inUse)):
		return nil
	case suspect != "" || !a.Revision.Is(named(good)):
		return c.Apply(ctx, a) // it is open whether the suspect is bad: it is not listed
	}
	if err := c.Syncer.GoBack(ctx, inUse, "the rollout goes back, attempt "+a.Key); err != nil {
		return fmt.Errorf("leaving config %q: %w", inUse, err)
	}
	return c.await(ctx, a.Revision)
}

// await returns when a config is in use, or is bad.
func (c configUpdater) await(ctx context.Context, r protocol.Revision) error {
	look := time.NewTicker(c.every())
	defer look.Stop()
	for {
		inUse, _, _, err := c.Syncer.Configs(ctx)
		if err == nil && r.Is(named(inUse)) {
			return nil
		}
		if _, bad, said, err := c.Syncer.Judge(ctx, spelled(r)); err == nil && bad {
			return &configError{said}
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("config %q is not in use: %w", r, ctx.Err()), err)
		case <-look.C:
		}
	}
}

// A configError is a config that was found to be bad.
type configError struct{ said string }

// Error implements error.
func (e *configError) Error() string { return "the config was found to be bad: " + e.said }

// Why is the reason for the status.
func (e *configError) Why() (reason, message string) { return reasonConfigBad, e.said }
