// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/backoff"
)

const (
	steadyMembers = 20
	steadyRenew   = 2 * time.Second
)

// A steady is what a renewal costs while nothing else happens, with a connection for each member.
type steady struct {
	renewals                       float64 // seen by a watch of another process
	requests, served, gets         float64 // for a renewal: sent, answered by the server's count, and GETs by both counts
	up, down, allocs, allocated    float64 // for a renewal: bytes, objects, bytes
	size                           float64 // of the Lease as it is stored, in protobuf
	refused, failed, lost, seconds float64
}

// steadies runs each side as often as asked for, in turns, once for all scenarios.
func (b *bench) steady(ctx context.Context) (map[string][]steady, error) {
	if len(b.steadies) > 0 {
		return b.steadies, nil
	}
	w, err := b.world(ctx)
	if err != nil {
		return nil, err
	}
	sides := []side{ours(), slim(), helpers(false), election()}
	for n := range b.repeats {
		for i := range sides {
			if n%2 == 1 {
				i = len(sides) - 1 - i
			}
			s, err := b.beatSteadily(ctx, w, sides[i])
			if err != nil {
				return nil, fmt.Errorf("repeat %d, %s: %w", n+1, sides[i].name, err)
			}
			fmt.Fprintf(os.Stderr, "  %s: %+v\n", sides[i].name, s)
			b.steadies[sides[i].name] = append(b.steadies[sides[i].name], s)
		}
	}
	return b.steadies, nil
}

// A cut is what all have counted at a moment in which no request is under way.
type cut struct {
	reading
	served   map[string]int
	versions int
	memory   runtime.MemStats
	at       time.Time
}

// beatSteadily measures one side.
func (b *bench) beatSteadily(ctx context.Context, w *world, s side) (steady, error) {
	window := 20 * time.Second
	if b.quick {
		window = 8 * time.Second
	}
	namespace, err := w.namespace(ctx)
	if err != nil {
		return steady{}, err
	}
	kubeconfig, err := w.kubeconfig()
	if err != nil {
		return steady{}, err
	}
	counter, err := w.process(ctx, "count", kubeconfig, namespace)
	if err != nil {
		return steady{}, err
	}
	defer func() { _ = counter.kill() }() // it ends with the control plane at the latest
	f, err := newFleet(w, s, namespace, steadyMembers, steadyMembers, steadyRenew)
	if err != nil {
		return steady{}, err
	}
	f.start(ctx, steadyRenew)
	defer func() { _ = f.stop() }() // its errors come below
	if err := await(ctx, "the first renewals", time.Minute, func() bool { return f.wire.read().renewed >= 2*steadyMembers }); err != nil {
		return steady{}, err
	}
	first, err := f.cut(ctx, w, counter, true)
	if err != nil {
		return steady{}, err
	}
	backoff.Sleep(ctx, window)
	last, err := f.cut(ctx, w, counter, false)
	if err := errors.Join(err, f.stop(), ctx.Err()); err != nil {
		return steady{}, err
	}
	r := first.to(last)
	r.lost = float64(f.lost.Load())
	l, err := w.admin.CoordinationV1().Leases(namespace).Get(ctx, f.name(0), metav1.GetOptions{})
	if err != nil {
		return steady{}, err
	}
	r.size = float64(l.Size())
	return r, nil
}

// to is what one renewal has cost between two cuts.
func (c cut) to(last cut) steady {
	d := last.since(c.reading)
	n := float64(last.versions - c.versions)
	r := steady{
		renewals: n, requests: float64(d.all) / n, gets: float64(max(d.gets, last.served["GET"]-c.served["GET"])) / n,
		up: float64(d.up) / n, down: float64(d.down) / n,
		allocs: float64(last.memory.Mallocs-c.memory.Mallocs) / n, allocated: float64(last.memory.TotalAlloc-c.memory.TotalAlloc) / n,
		refused: float64(d.refused), failed: float64(d.failed), seconds: last.at.Sub(c.at).Seconds(),
	}
	for verb, count := range last.served {
		if verb != "LIST" && verb != "WATCH" { // of the other process
			r.served += float64(count-c.served[verb]) / n
		}
	}
	return r
}

// cut counts. What it allocates itself is outside of what it measures: before the first count, after the last.
func (f *fleet) cut(ctx context.Context, w *world, counter *process, first bool) (c cut, err error) {
	err = f.wire.still(func() error {
		if !first {
			runtime.ReadMemStats(&c.memory)
		}
		c.at, c.reading = time.Now(), f.wire.read()
		// Both counts may come a moment later than the answers: they are read until they stand.
		for stood := 0; stood < 3; stood++ {
			var seen struct{ Versions int }
			if err := counter.ask(ctx, "count", &seen); err != nil {
				return err
			}
			served, err := w.served(ctx)
			if err != nil {
				return err
			}
			if seen.Versions != c.versions || served["PUT"] != c.served["PUT"] {
				stood = 0
			}
			c.versions, c.served = seen.Versions, served
			backoff.Sleep(ctx, 50*time.Millisecond)
		}
		if first {
			runtime.ReadMemStats(&c.memory)
		}
		return nil
	})
	return c, err
}

// countVersions counts, in a process of its own, the new versions of the Leases of a namespace.
func countVersions(ctx context.Context, r role) error {
	w, err := r.client.CoordinationV1().Leases(r.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var n atomic.Int64
	go func() {
		for event := range w.ResultChan() {
			if event.Type == watch.Modified {
				n.Add(1)
			}
		}
		n.Store(math.MinInt32) // nobody can take this for a count
	}()
	return obey(func(string) (any, error) { return map[string]int64{"Versions": n.Load()}, nil })
}

// A fleet is many members of one side in this process.
type fleet struct {
	side      side
	namespace string
	members   int
	renew     time.Duration
	wire      *wire
	clients   []kubernetes.Interface
	lost      atomic.Int64

	cancel context.CancelFunc
	beats  sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

// newFleet makes one whose members share some connections.
func newFleet(w *world, s side, namespace string, members, connections int, renew time.Duration) (*fleet, error) {
	f := &fleet{side: s, namespace: namespace, members: members, renew: renew, wire: &wire{}}
	config, err := w.user()
	if err != nil {
		return nil, err
	}
	for range connections {
		client, err := kubernetes.NewForConfig(f.wire.client(config))
		if err != nil {
			return nil, err
		}
		f.clients = append(f.clients, client)
	}
	return f, nil
}

func (f *fleet) name(i int) string { return fmt.Sprintf("belay-agent-node-%05d", i) }

// start starts the members one by one over a time, so that their renewals are spread over it.
func (f *fleet) start(ctx context.Context, over time.Duration) {
	ctx, f.cancel = context.WithCancel(ctx)
	from := time.Now()
	f.beats.Go(func() {
		for i := range f.members {
			early := over*time.Duration(i)/time.Duration(f.members) - time.Since(from)
			if !backoff.Sleep(ctx, early) {
				return
			}
			f.beats.Go(func() { f.beat(ctx, i) })
		}
	})
}

func (f *fleet) beat(ctx context.Context, i int) {
	err := f.side.beat(ctx, heart{
		client: f.clients[i%len(f.clients)], namespace: f.namespace, name: f.name(i), renew: f.renew, lost: &f.lost,
	})
	if err != nil && ctx.Err() == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.errs = append(f.errs, fmt.Errorf("member %q: %w", f.name(i), err))
	}
}

// stop ends all members, and returns what went wrong with them. It may be called again.
func (f *fleet) stop() error {
	f.cancel()
	f.beats.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.errs...)
}
