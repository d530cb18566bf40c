// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/backoff"
)

const (
	connections = 10  // of all members together, at the least
	startRate   = 400 // members a second, at most
	meanJitter  = 1.02
	reached     = 0.97 // of the renewals that were to be
)

// A cell is one load.
type cell struct {
	members int
	renew   time.Duration
	window  time.Duration
	side    side
}

func (c cell) String() string { return fmt.Sprintf("%d@%.0fs", c.members, c.renew.Seconds()) }

// key tells cells apart.
func (c cell) key() string { return fmt.Sprintf("%s %s over %v", c.side.name, c, c.window) }

// A burden is what a cell came to.
type burden struct {
	cell cell
	rate float64 // renewals a second
	processor
	times  figures[time.Duration]
	allocs float64 // for a renewal
	counts
	lost int
	view viewCost
}

// cells are all loads of ours, the smallest first.
func (b *bench) cells() []cell {
	sizes, intervals := []int{1000, 5000, 10_000}, []time.Duration{10 * time.Second, 30 * time.Second, time.Minute}
	if b.quick {
		sizes, intervals = []int{200, 500, 1000}, []time.Duration{5 * time.Second}
	}
	var all []cell
	for _, n := range sizes {
		for _, renew := range intervals {
			all = append(all, b.cell(n, renew, ours()))
		}
	}
	return all
}

func (b *bench) cell(n int, renew time.Duration, s side) cell {
	window := max(45*time.Second, renew)
	if b.quick {
		window = 15 * time.Second
	}
	return cell{n, renew, window, s}
}

// load is I3.
func load(ctx context.Context, b *bench) error {
	for _, c := range b.cells() {
		r, err := b.burden(ctx, c)
		var crowd *crowdError
		switch {
		case errors.As(err, &crowd):
			b.print(line{name: "I3." + c.String(), more: crowd.Error() + "; SATURATED: the machine is too small for it"})
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", c.key(), err)
		}
		b.print(line{name: "I3." + c.String(), ours: show(r.rate) + "/s", ratio: over(r.rate, c.want()), more: r.describe()})
	}
	compared := b.cell(5000, 10*time.Second, ours())
	if b.quick {
		compared = b.cell(500, 5*time.Second, ours())
	}
	mine, err := b.burden(ctx, compared)
	if err != nil {
		return err
	}
	theirs, err := b.burden(ctx, b.cell(compared.members, compared.renew, helpers(true)))
	if err != nil {
		return err
	}
	b.compareLoad(mine, theirs)
	return nil
}

func (b *bench) compareLoad(mine, theirs burden) {
	name := "I3." + mine.cell.String() + "."
	peer := "peer component-helpers: "
	put := func(what string, ours, peer float64, more string) {
		b.print(line{name: name + what, ours: show(ours), peer: show(peer), ratio: over(ours, peer), more: more})
	}
	put("rate", mine.rate, theirs.rate, peer+theirs.describe())
	put("apiserver", mine.apiserver, theirs.apiserver, "cores")
	put("etcd", mine.etcd, theirs.etcd, "cores")
	put("members", mine.self, theirs.self, "cores of the process with all members")
	put("allocs", mine.allocs, theirs.allocs, "allocations for a renewal")
	for _, share := range []float64{0.5, 0.99} {
		ours, other := mine.times.quantile(share), theirs.times.quantile(share)
		b.print(line{name: fmt.Sprintf("%sp%.0f", name, 100*share), ours: show(ours), peer: show(other), ratio: over(ours, other), more: "of an update, from the request to the header of the answer"})
	}
}

// want is how many renewals a second there should be.
func (c cell) want() float64 { return float64(c.members) / c.renew.Seconds() / meanJitter }

// saturated says that the figures are those of a machine that cannot keep up.
func (r burden) saturated() bool {
	return r.idle < runner.Busy || r.rate < reached*r.cell.want() || r.lost > 0 || r.refused > 0 || r.failed > 0
}

// others is how many cores were used by what is no part of this benchmark: it tells a machine that is busy otherwise from one that is too small.
func (r burden) others() float64 {
	return max(0, float64(runtime.NumCPU())*(1-r.idle)-r.apiserver-r.etcd-r.self-(r.view.alone+r.view.with)/2)
}

func (r burden) describe() string {
	text := fmt.Sprintf("want %s/s over %v; API server %.2f cores, etcd %.2f, members' process %.2f, one view's %.2f, others on the machine %.2f of %d; update p50 %s, p99 %s; %d refused, %d failed, %d holds lost",
		show(r.cell.want()), r.cell.window, r.apiserver, r.etcd, r.self, r.view.with, r.others(), runtime.NumCPU(),
		show(r.times.median()), show(r.times.quantile(0.99)), r.refused, r.failed, r.lost)
	if r.saturated() {
		text += "; SATURATED: not a measure of the server alone"
	}
	return text
}

// burden runs a cell on a control plane of its own, once for all scenarios.
func (b *bench) burden(ctx context.Context, c cell) (r burden, err error) {
	if done, ok := b.burdens[c.key()]; ok {
		return done, nil
	}
	w, err := b.world(ctx)
	if err != nil {
		return burden{}, err
	}
	if r, err = b.bear(ctx, w, c); err != nil {
		return burden{}, errors.Join(err, b.drop())
	}
	b.burdens[c.key()] = r
	if !b.quick { // what is left of it must not weigh on the next
		err = b.drop()
	}
	return r, err
}

func (b *bench) bear(ctx context.Context, w *world, c cell) (r burden, err error) {
	namespace, err := w.namespace(ctx)
	if err != nil {
		return burden{}, err
	}
	kubeconfig, err := w.kubeconfig()
	if err != nil {
		return burden{}, err
	}
	viewer, err := w.process(ctx, "view", kubeconfig, namespace, c.renew.String())
	if err != nil {
		return burden{}, err
	}
	defer func() { err = errors.Join(err, viewer.kill()) }()
	f, err := newFleet(w, c.side, namespace, c.members, min(connections, c.members), c.renew)
	if err != nil {
		return burden{}, err
	}
	from := time.Now()
	f.start(ctx, c.spread())
	defer func() { _ = f.stop() }() // its errors come below
	if err := viewer.sees(ctx, c.members+1, c.spread()+2*time.Minute); err != nil {
		return burden{}, err
	}
	backoff.Sleep(ctx, 5*time.Second)
	fmt.Fprintf(os.Stderr, "  %s: all there after %v\n", c.key(), time.Since(from).Round(time.Second))
	r, err = f.measure(ctx, w, viewer, c)
	return r, errors.Join(err, f.stop(), ctx.Err())
}

// A crowdError says that the members of a load were never all there.
type crowdError struct {
	seen, leases int
	limit        time.Duration
}

func (e *crowdError) Error() string {
	return fmt.Sprintf("%d of %d Leases were seen after %v", e.seen, e.leases, e.limit)
}

// sees waits until the watching process has that many Leases. Answers may have been lost, so the writers cannot say.
func (p *process) sees(ctx context.Context, leases int, limit time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var seen viewSample
	for {
		err := p.ask(waiting, "count", &seen)
		switch {
		case waiting.Err() != nil && ctx.Err() == nil:
			return &crowdError{seen.Leases, leases, limit}
		case err != nil:
			return err
		case seen.Leases >= leases:
			return nil
		}
		backoff.Sleep(waiting, 250*time.Millisecond)
	}
}

// spread is over how long the members start: a whole number of intervals, so that the renewals are spread evenly.
func (c cell) spread() time.Duration {
	spread := c.renew
	for float64(c.members) > startRate*spread.Seconds() {
		spread += c.renew
	}
	return spread
}

// measure measures for the window, in whose second half a view runs on the other process's informer.
func (f *fleet) measure(ctx context.Context, w *world, viewer *process, c cell) (r burden, err error) {
	var before, between, after viewSample
	var memory [2]runtime.MemStats
	if err := viewer.ask(ctx, "sample", &before); err != nil {
		return r, err
	}
	runtime.ReadMemStats(&memory[0])
	from, first := time.Now(), f.wire.read()
	lost := f.lost.Load()
	then, err := w.spent()
	if err != nil {
		return r, err
	}
	backoff.Sleep(ctx, c.window/2)
	if err := viewer.ask(ctx, "view", &between); err != nil {
		return r, err
	}
	backoff.Sleep(ctx, c.window/2)
	now, err := w.spent()
	took, last := time.Since(from), f.wire.read()
	runtime.ReadMemStats(&memory[1])
	if err := errors.Join(err, viewer.ask(ctx, "sample", &after)); err != nil {
		return r, err
	}
	d := last.since(first)
	r = burden{
		cell: c, rate: float64(d.renewed) / took.Seconds(), processor: now.since(then, took), times: f.wire.times(first, last),
		allocs: float64(memory[1].Mallocs-memory[0].Mallocs) / float64(max(1, d.renewed)), counts: d.counts,
		lost: int(f.lost.Load() - lost), view: viewed(before, between, after),
	}
	return r, nil
}
