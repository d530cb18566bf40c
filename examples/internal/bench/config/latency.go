// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/backoff"
)

// The bars of C1: how much longer than the physical limit, by the medians, and what a settled node may ask of the API server.
const (
	mostAdoption = 2.0
	mostRollback = 2.0
	mostRequests = 0
)

// A change is one adoption or rollback: how long it took in all, its parts in order, and how many records were written before the restart and after it.
type change struct {
	took          time.Duration
	parts         []part
	before, after int
}

type part struct {
	name string
	took time.Duration
}

// latencies is C1. Ours and the peer take turns, so that what else the machine does meets both.
func (b *bench) latencies(ctx context.Context) (err error) {
	w, err := newWorld(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	a, err := w.agent(ctx, "ours")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.stop()) }()
	p, err := w.peer(ctx, "peer")
	if err != nil {
		return err
	}
	defer func() { p.watch.Stop(); err = errors.Join(err, p.end()) }()
	var adopted, back []change
	var peerAdopted, peerBack []time.Duration
	for i := range b.Repeats + 1 {
		up, down, err := w.ours(ctx, a)
		if err != nil {
			return fmt.Errorf("ours, repeat %d: %w", i, err)
		}
		peerUp, peerDown, err := w.theirs(ctx, p, up, down)
		if err != nil {
			return fmt.Errorf("the peer, repeat %d: %w", i, err)
		}
		if i == 0 { // everything is new to the disk and to the caches
			continue
		}
		adopted, back = append(adopted, up), append(back, down)
		peerAdopted, peerBack = append(peerAdopted, peerUp), append(peerBack, peerDown)
	}
	b.latency("C1.adoption", "from the answer to the assignment, before which the node may have noticed it, to the child that runs on it", mostAdoption, adopted, peerAdopted)
	b.latency("C1.rollback", "from the crash to the child that runs on the last known good config", mostRollback, back, peerBack)
	return b.idle(ctx, w, a)
}

// latency prints a comparison and the parts of ours.
func (b *bench) latency(name, what string, bar float64, ours []change, theirs []time.Duration) {
	all := runner.Each(ours, func(c change) time.Duration { return c.took })
	peer := runner.Figures[time.Duration](theirs)
	ratio := float64(all.Median()) / float64(peer.Median())
	var parts []string
	for i, p := range ours[0].parts {
		parts = append(parts, p.name+" "+runner.Show(runner.Each(ours, func(c change) time.Duration { return c.parts[i].took }).Median()))
	}
	b.Print(runner.Line{
		Name: name, Ours: all.String(), Peer: peer.String(), Ratio: runner.Over(all.Median(), peer.Median()), Bar: fmt.Sprint(bar), Good: ratio <= bar,
		More: fmt.Sprintf("%s; medians of %d: %s; %d records before the restart, %d after it; the peer watches, gets, writes as many files durably, applies the same status and starts the same child",
			what, len(ours), strings.Join(parts, ", "), ours[0].before, ours[0].after),
	})
}

// parts are the times between moments, in order.
func (m *marks) parts(from time.Time, names ...string) (parts []part) {
	for _, name := range names {
		at := m.get(name)
		parts = append(parts, part{name, at.Sub(from)})
		from = at
	}
	return parts
}

// ours is one adoption of a good config, and one rollback of a config that crashes.
func (w *world) ours(ctx context.Context, a *agent) (up, down change, err error) {
	word := fmt.Sprintf("good-%d", w.serial.Add(1))
	cm, err := w.config(ctx, word)
	if err != nil {
		return up, down, err
	}
	a.begin()
	puts := a.puts.Load()
	assigned, err := w.assign(ctx, a.node, cm)
	if err != nil {
		return up, down, err
	}
	running, err := a.heard.next(ctx, word)
	if err != nil {
		return up, down, err
	}
	up = change{took: running.Sub(assigned), parts: a.parts(assigned, "noticed", "fetched", "recorded", "gone", "decided", "reported")}
	up.parts = append(up.parts, part{"running", running.Sub(a.get("reported"))})
	up.before, up.after = int(a.putsAt("recorded")-puts), int(a.putsAt("decided")-a.putsAt("recorded"))
	if err := a.good(ctx, string(cm.UID)); err != nil {
		return up, down, err
	}
	if cm, err = w.config(ctx, crash); err != nil {
		return up, down, err
	}
	if _, err = w.assign(ctx, a.node, cm); err != nil {
		return up, down, err
	}
	back, err := a.heard.next(ctx, word)
	if err != nil {
		return up, down, err
	}
	crashed := a.get("ended")
	down = change{took: back.Sub(crashed), parts: a.parts(crashed, "gone", "decided", "reported"), after: int(a.putsAt("decided") - a.putsAt("gone"))}
	down.parts = append(down.parts, part{"running", back.Sub(a.get("reported"))})
	return up, down, nil
}

// theirs is the same by the peer.
func (w *world) theirs(ctx context.Context, p *peer, up, down change) (adopted, back time.Duration, err error) {
	word := fmt.Sprintf("good-%d", w.serial.Add(1))
	cm, err := w.config(ctx, word)
	if err != nil {
		return 0, 0, err
	}
	failed := make(chan error, 1)
	go func() { failed <- p.adopt(ctx, up.before, up.after) }()
	assigned, err := w.assign(ctx, p.node, cm)
	if err = errors.Join(err, <-failed); err != nil {
		return 0, 0, err
	}
	running, err := p.heard.next(ctx, word)
	if err != nil {
		return 0, 0, err
	}
	if err = errors.Join(p.end(), p.start(crash), p.gone()); err != nil {
		return 0, 0, err
	}
	crashed := time.Now()
	if err := p.again(ctx, down.after, word); err != nil {
		return 0, 0, err
	}
	again, err := p.heard.next(ctx, word)
	return running.Sub(assigned), again.Sub(crashed), err
}

// idle counts what a settled node asks for.
func (b *bench) idle(ctx context.Context, w *world, a *agent) error {
	window := time.Minute
	if b.Quick {
		window = 10 * time.Second
	}
	backoff.Sleep(ctx, 3*time.Second) // what is left to report is reported
	served, err := w.served(ctx)
	if err != nil {
		return err
	}
	sent := a.requests.Load()
	backoff.Sleep(ctx, window)
	now, err := w.served(ctx)
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	n := max(int(a.requests.Load()-sent), now-served)
	b.Print(runner.Line{
		Name: "C1.idle", Ours: fmt.Sprint(n), Bar: fmt.Sprint(mostRequests), Good: n <= mostRequests,
		More: fmt.Sprintf("requests in %v of a settled node on its watch: %d sent, %d counted by the API server", window, a.requests.Load()-sent, now-served),
	})
	return ctx.Err()
}
