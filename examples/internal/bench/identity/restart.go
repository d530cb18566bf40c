// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/internal/backoff"
)

// heldBar is how long a process that was killed may take from its next start until it has its Lease again.
const heldBar = time.Second

// A revenant is a way to come back.
type revenant struct {
	mode, lock string
	renew      time.Duration
	times      int
}

// restart is I7.
func restart(ctx context.Context, b *bench) error {
	w, err := b.world(ctx)
	if err != nil {
		return err
	}
	const renew = 10 * time.Second // the defaults: a leader election of 15 s, 10 s and 2 s has its own
	dir, times := w.env.Dir(), 10
	if b.quick {
		times = 4
	}
	mine, err := w.comeBack(ctx, revenant{"member", filepath.Join(dir, "member.lock"), renew, times})
	if err != nil {
		return fmt.Errorf("with a lock file: %w", err)
	}
	blind, err := w.comeBack(ctx, revenant{"helpers", "", renew, times})
	if err != nil {
		return fmt.Errorf("component-helpers: %w", err)
	}
	elected, err := w.comeBack(ctx, revenant{"election", "", 2 * time.Second, 1})
	if err != nil {
		return fmt.Errorf("leaderelection: %w", err)
	}
	more := "from the start of the process to Held, with a lock file, after kill -9"
	b.print(line{
		name: "I7.held-leaderelection", ours: mine.String(), peer: elected.String(), ratio: over(mine.median(), elected.median()),
		bar: heldBar.String(), good: mine.most() < heldBar, more: more + "; the peer waits for its LeaseDuration, 15 s",
	})
	b.print(line{
		name: "I7.held-component-helpers", ours: mine.String(), peer: blind.String(), ratio: over(mine.median(), blind.median()),
		bar: heldBar.String(), good: mine.most() < heldBar, more: "the same; the peer takes a Lease over without asking who else is alive",
	})
	if b.quick {
		return nil
	}
	alone, err := w.comeBack(ctx, revenant{"member", "", renew, 1})
	if err != nil {
		return fmt.Errorf("without a lock file: %w", err)
	}
	b.print(line{name: "I7.held-without-lock-file", ours: alone.String(), ratio: over(alone.median(), timing(renew).Liveness), more: "waits for Liveness, to which the ratio is: nothing shows that the process before is gone"})
	return nil
}

// comeBack starts a process that gets a Lease, kills it, and measures how long the next one takes, again and again.
func (w *world) comeBack(ctx context.Context, r revenant) (took figures[time.Duration], err error) {
	namespace, err := w.namespace(ctx)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := w.kubeconfig()
	if err != nil {
		return nil, err
	}
	for life := range r.times + 1 {
		from := time.Now()
		p, err := w.process(ctx, r.mode, kubeconfig, namespace, r.renew.String(), r.lock)
		if err != nil {
			return nil, err
		}
		said, err := p.hear(ctx)
		if life > 0 {
			took = append(took, time.Since(from))
		}
		if err := errors.Join(err, p.kill()); err != nil {
			return nil, err
		}
		if said != "held" {
			return nil, fmt.Errorf("the process said %q", said)
		}
	}
	return took, nil
}

// heart is that of a process that has one. Its first argument is the interval.
func (r role) heart(name string) (heart, error) {
	if len(r.args) == 0 {
		return heart{}, errors.New("the interval is missing")
	}
	renew, err := time.ParseDuration(r.args[0])
	return heart{client: r.client, namespace: r.namespace, name: name, renew: renew, lost: new(atomic.Int64)}, err
}

func sayHeld() { _, _ = fmt.Fprintln(os.Stdout, "held") } // where nobody listens, nobody measures

func runMember(ctx context.Context, r role) error {
	h, err := r.heart("revenant")
	if err != nil {
		return err
	}
	spec := h.spec()
	spec.Fingerprint, spec.LockFile = identity.LocalFingerprint("/"), r.args[1]
	m, err := identity.New(h.client.CoordinationV1().Leases(h.namespace), spec, identity.Options{})
	if err != nil {
		return err
	}
	return m.Run(ctx, func(ctx context.Context, _ identity.Epoch) error {
		sayHeld()
		<-ctx.Done()
		return nil
	})
}

// runElection has the peer's usual times.
func runElection(ctx context.Context, r role) error {
	h, err := r.heart("revenant")
	if err != nil {
		return err
	}
	leader, err := leaderelection.NewLeaderElector(h.election(15*time.Second, 10*time.Second, sayHeld))
	if err != nil {
		return err
	}
	leader.Run(ctx)
	return nil
}

// runHelpers says that it holds its Lease as soon as it has written it: the peer has no other word for that.
func runHelpers(ctx context.Context, r role) error {
	h, err := r.heart("revenant")
	if err != nil {
		return err
	}
	go func() { _ = helpers(false).beat(ctx, h) }() // it never fails
	wrote := func() bool { c := r.wire.read(); return c.all-c.gets-c.failed > 0 }
	for !wrote() {
		if !backoff.Sleep(ctx, time.Millisecond) {
			return ctx.Err()
		}
	}
	sayHeld()
	<-ctx.Done()
	return nil
}
