// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/identity"
)

// heapBar is how many bytes a view may keep of a member besides the Lease.
const heapBar = 1024

// A viewCost is what watching costs: the informer alone, and with a view on it.
type viewCost struct {
	alone, with float64 // cores of the process
	heap        float64 // bytes that the view keeps of a member
	alive       int
}

// watching is I4. What a view keeps of a member does not hang on how often that renews: the members are as many as in the largest load, and
// renew as often as a small machine can bear. The view is there for half of the window, in which each of them must be seen renewing.
func watching(ctx context.Context, b *bench) error {
	c := b.cell(10_000, 30*time.Second, ours())
	c.window = 3 * c.renew
	if b.quick {
		c = b.cell(1000, 5*time.Second, ours())
	}
	r, err := b.burden(ctx, c)
	if err != nil {
		return err
	}
	v := r.view
	b.print(line{
		name: "I4.heap", ours: show(v.heap), ratio: over(v.heap, heapBar), bar: fmt.Sprint(heapBar), good: v.heap <= heapBar && v.alive >= c.members,
		more: fmt.Sprintf("bytes for a member beyond the informer's, %d alive of %d and the view's own, at %s", v.alive, c.members, c),
	})
	more := "cores of a process with informer, view and own member, beside the same without the view, at " + c.String()
	if r.saturated() {
		more += "; SATURATED"
	}
	b.print(line{name: "I4.cpu", ours: show(v.with), peer: show(v.alone), ratio: over(v.with, v.alone), more: more})
	return nil
}

// A viewSample is what a watching process says of itself. Answering takes time, of which the beginning and the end are given.
type viewSample struct {
	Begin, End instant
	Heap       float64
	Leases     int
	Alive      int
}

// An instant is when how much processor time was used, in seconds.
type instant struct{ At, CPU float64 }

func (i instant) cores(then instant) float64 { return (i.CPU - then.CPU) / (i.At - then.At) }

func viewed(before, between, after viewSample) viewCost {
	return viewCost{
		alone: between.Begin.cores(before.End), with: after.Begin.cores(between.End),
		heap: (after.Heap - between.Heap) / float64(max(1, after.Leases)), alive: after.Alive,
	}
}

// A viewer watches, in a process of its own.
type viewer struct {
	began    time.Time
	informer cache.SharedIndexInformer
	view     *identity.View // nil until it is asked for
	canary   *identity.Member
	liveness time.Duration
}

// runView is a process with an informer, a member and, from the order "view" on, a view.
func runView(ctx context.Context, r role) error {
	h, err := r.heart("view")
	if err != nil {
		return err
	}
	leases := r.client.CoordinationV1().Leases(r.namespace)
	v := &viewer{began: time.Now(), liveness: timing(h.renew).Liveness}
	if v.informer, err = identity.NewInformer(leases, component); err != nil {
		return err
	}
	if v.canary, err = identity.New(leases, h.spec(), identity.Options{}); err != nil {
		return err
	}
	ended := make(chan error, 2) // the member and the view
	go func() { ended <- v.canary.Run(ctx, nil) }()
	go v.informer.RunWithContext(ctx)
	return obey(func(order string) (any, error) {
		select {
		case err := <-ended:
			return nil, fmt.Errorf("the view or its member has ended: %w", err)
		default:
		}
		s := viewSample{Leases: len(v.informer.GetStore().ListKeys())}
		if order == "count" {
			return s, nil
		}
		var err error
		if s.Begin, err = v.now(); err != nil {
			return nil, err
		}
		s.Heap = heap()
		if v.view != nil {
			s.Alive = len(v.view.Peers(identity.Alive))
		}
		if order == "view" {
			if err := v.open(ctx, ended); err != nil {
				return nil, err
			}
		}
		s.End, err = v.now()
		return s, err
	})
}

// open puts a view on the informer.
func (v *viewer) open(ctx context.Context, ended chan<- error) (err error) {
	v.view, err = identity.NewView(identity.ViewConfig{Source: v.informer, Canary: v.canary, Liveness: v.liveness})
	if err != nil {
		return err
	}
	go func() { ended <- v.view.Run(ctx) }()
	return await(ctx, "the view", time.Minute, func() bool { return len(v.view.Peers()) >= len(v.informer.GetStore().ListKeys()) })
}

func (v *viewer) now() (instant, error) {
	used, err := runner.ProcessTime("self")
	return instant{At: time.Since(v.began).Seconds(), CPU: used}, err
}

// heap is the least of some measurements: what is being decoded just now is not to count.
func heap() float64 {
	least := 0.0
	for range 5 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if used := float64(m.HeapAlloc); least == 0 || used < least {
			least = used
		}
	}
	return least
}
