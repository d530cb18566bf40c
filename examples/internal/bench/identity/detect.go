// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/internal/backoff"
)

// The times of I5 are a tenth of the defaults, so that a stall of 5 s is longer than Liveness.
const (
	watchedRenew = time.Second
	stall        = 5 * time.Second
)

// A guild is members in this process that are watched by a view.
type guild struct {
	members map[string]*mortal
	view    *identity.View
	cancel  context.CancelFunc
	runs    sync.WaitGroup

	mu   sync.Mutex
	errs []error
	left map[string]time.Time // when a member was called lost
	told map[string]int       // Left events by reason
}

// A mortal is a member that can stop without a word.
type mortal struct {
	member *identity.Member
	die    context.CancelFunc
	dead   chan struct{}
	last   time.Time // when its last renewal was sent
	died   time.Time
}

// detection is I5.
func detection(ctx context.Context, b *bench) error {
	n, dying, every, stalls, restarts := 120, 60, 300*time.Millisecond, 3, 2
	if b.quick {
		n, dying, every, stalls, restarts = 60, 20, 500*time.Millisecond, 1, 1
	}
	w, err := b.world(ctx)
	if err != nil {
		return err
	}
	g, err := newGuild(ctx, w, n)
	if err != nil {
		return err
	}
	defer func() { _ = g.stop() }()
	if err := g.lose(ctx, dying, every); err != nil {
		return err
	}
	b.printDetection(g, dying)
	text, err := g.suffer(ctx, w, stalls, restarts, n-dying)
	if err := errors.Join(err, g.stop()); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	falsely := len(g.left) - dying
	b.print(line{name: "I5.false-losses", ours: fmt.Sprint(falsely), bar: "0", good: falsely == 0, more: text})
	return nil
}

func newGuild(ctx context.Context, w *world, n int) (*guild, error) {
	namespace, err := w.namespace(ctx)
	if err != nil {
		return nil, err
	}
	config, err := w.user()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	g := &guild{members: map[string]*mortal{}, cancel: cancel, left: map[string]time.Time{}, told: map[string]int{}}
	for i := range n + 1 { // the first is the view's own
		m, err := g.admit(ctx, client, heart{namespace: namespace, name: fmt.Sprintf("node-%03d", i), renew: watchedRenew})
		if err != nil {
			return nil, errors.Join(err, g.stop())
		}
		if i > 0 {
			continue
		}
		if err := g.watch(ctx, client, namespace, m.member); err != nil {
			return nil, errors.Join(err, g.stop())
		}
	}
	err = await(ctx, "all members to be alive", time.Minute, func() bool { return g.alive() == n+1 })
	if err != nil {
		return nil, errors.Join(err, g.stop())
	}
	return g, nil
}

func (g *guild) alive() int { return len(g.view.Peers(identity.Alive)) }

func (g *guild) run(what string, f func() error) {
	g.runs.Go(func() {
		if err := f(); err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.errs = append(g.errs, fmt.Errorf("%s: %w", what, err))
		}
	})
}

func (g *guild) admit(ctx context.Context, client kubernetes.Interface, h heart) (*mortal, error) {
	member, err := identity.New(client.CoordinationV1().Leases(h.namespace), h.spec(), identity.Options{})
	if err != nil {
		return nil, err
	}
	ctx, die := context.WithCancel(ctx)
	m := &mortal{member: member, die: die, dead: make(chan struct{})}
	g.members[h.name] = m
	g.run(h.name, func() error {
		defer close(m.dead)
		return member.Run(ctx, nil)
	})
	return m, nil
}

func (g *guild) watch(ctx context.Context, client kubernetes.Interface, namespace string, canary *identity.Member) error {
	informer, err := identity.NewInformer(client.CoordinationV1().Leases(namespace), component)
	if err != nil {
		return err
	}
	g.view, err = identity.NewView(identity.ViewConfig{Source: informer, Canary: canary, Liveness: timing(watchedRenew).Liveness})
	if err != nil {
		return err
	}
	g.view.Subscribe(func(e identity.Event) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if e.Type != identity.Left {
			return
		}
		g.told[string(e.Reason)]++
		if e.Reason == identity.LeftQuiet {
			g.left[e.Peer.Key.Name] = time.Now()
		}
	})
	g.run("view", func() error { return g.view.Run(ctx) })
	g.run("informer", func() error { informer.RunWithContext(ctx); return nil })
	return nil
}

// lose stops members one after the other, so few at a time that the mass-loss brake does not hold, and waits until the view has lost them.
func (g *guild) lose(ctx context.Context, dying int, every time.Duration) error {
	for i := range dying {
		m := g.members[fmt.Sprintf("node-%03d", i+1)]
		m.die()
		<-m.dead
		m.died = time.Now()
		m.last = m.died.Add(-m.member.Status().Renewed)
		if !backoff.Sleep(ctx, every) {
			return ctx.Err()
		}
	}
	return await(ctx, "all losses", time.Minute, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.left) >= dying
	})
}

func (b *bench) printDetection(g *guild, dying int) {
	liveness := timing(watchedRenew).Liveness
	var since, sinceDeath figures[time.Duration]
	early := 0
	g.mu.Lock()
	for name, at := range g.left {
		m := g.members[name]
		if m.died.IsZero() {
			continue // it lives: see the false losses
		}
		since, sinceDeath = append(since, at.Sub(m.last)), append(sinceDeath, at.Sub(m.died))
		if at.Sub(m.last) < liveness {
			early++
		}
	}
	g.mu.Unlock()
	for _, share := range []float64{0.5, 0.99} {
		took := since.quantile(share)
		b.print(line{
			name: fmt.Sprintf("I5.detection-p%.0f", 100*share), ours: show(took), ratio: over(took, liveness),
			more: fmt.Sprintf("from the last renewal to the Left event, as a ratio to Liveness of %v, renewing each %v; from the death %s; %d deaths among %d",
				liveness, watchedRenew, show(sinceDeath.quantile(share)), dying, len(g.members)-1),
		})
	}
	b.print(line{name: "I5.early", ours: fmt.Sprint(early), bar: "0", good: early == 0, more: fmt.Sprintf("losses before Liveness was over; the earliest after %s", show(since.least()))})
}

// suffer freezes and kills the API server, and waits each time until all who live are alive again.
func (g *guild) suffer(ctx context.Context, w *world, stalls, restarts, living int) (string, error) {
	server := w.env.APIServer()
	back := func(what string) error {
		from := time.Now()
		backoff.Sleep(ctx, 2*timing(watchedRenew).Liveness)
		err := await(ctx, "all to be alive after "+what, time.Minute, func() bool { return g.alive() == living+1 })
		fmt.Fprintf(os.Stderr, "  %s: all alive within %v\n", what, time.Since(from).Round(time.Second))
		return err
	}
	for range stalls {
		if err := server.Pause(); err != nil {
			return "", err
		}
		backoff.Sleep(ctx, stall)
		if err := errors.Join(server.Resume(), back("a stall")); err != nil {
			return "", err
		}
	}
	var outages figures[time.Duration]
	for range restarts {
		from := time.Now()
		if err := errors.Join(server.Kill(), server.Start(ctx)); err != nil {
			return "", err
		}
		outages = append(outages, time.Since(from))
		if err := back("a restart"); err != nil {
			return "", err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return fmt.Sprintf("of %d members that renew all the time, over %d stalls of the API server of %v and %d restarts of %s; %d had given up by themselves and were replaced",
		living, stalls, stall, restarts, outages, g.told[string(identity.LeftReplaced)]), nil
}

func (g *guild) stop() error {
	g.cancel()
	g.runs.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(g.errs...)
}
