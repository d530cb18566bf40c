// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/klog/v2"

	"github.com/belayproject/belay/examples/internal/bench/runner"
)

type bench struct{ runner.Bench }

func main() {
	b := &bench{runner.Bench{Area: "machine", Repeats: 1}}
	os.Exit(b.Main("100 machines that take a minute to start", b.run, func(_ context.Context, name string, _ []string) error {
		return fmt.Errorf("there is no process %q", name)
	}))
}

func (b *bench) run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.Logger{})
	return b.Run(ctx, []runner.Scenario{{Name: "M1", Run: b.life}})
}

// The bars.
const (
	writesBar = 8
	createBar = 1.1
	period    = 10 * time.Second
)

// life takes a set up and down.
func (b *bench) life(ctx context.Context) (err error) {
	machines, start, steady := 1000, 5*time.Minute, 3*time.Minute
	if b.Quick {
		machines, start, steady = 100, time.Minute, 30*time.Second
	}
	w, err := newWorld(ctx, start)
	if err != nil {
		return err
	}
	defer func() {
		if e := w.close(); err == nil {
			err = e
		}
	}()
	begun := time.Now()
	if err := w.scale(ctx, machines); err != nil {
		return err
	}
	stones, err := w.await(ctx, machines, 2*start+10*time.Minute)
	if err != nil {
		return err
	}
	took := time.Since(begun)
	up := w.calls.take()
	if err := b.steady(ctx, w, steady); err != nil {
		return err
	}
	if err := w.scale(ctx, 0); err != nil {
		return err
	}
	if _, err := w.await(ctx, 0, 15*time.Minute); err != nil {
		return err
	}
	down := w.calls.take()
	writes := float64(up.writes()+down.writes()) / float64(machines)
	b.Print(runner.Line{Name: "M1.writes", Ours: fmt.Sprintf("%.2f", writes), Bar: fmt.Sprint(writesBar), Good: writes <= writesBar,
		More: fmt.Sprintf("%d machines, up: %s; down: %s", machines, up, down)})
	ratio := took.Seconds() / start.Seconds()
	b.Print(runner.Line{Name: "M3.create", Ours: took.Round(time.Second).String(), Peer: start.String(), Ratio: fmt.Sprintf("%.3f", ratio),
		Bar: fmt.Sprint(createBar), Good: ratio <= createBar, More: fmt.Sprintf("from the order until all run; the peer is the start of one instance; %s", stones)})
	return w.left(ctx)
}

// steady counts while nothing happens.
func (b *bench) steady(ctx context.Context, w *world, wait time.Duration) error {
	select { // what was under way when the last machine was running
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(30 * time.Second):
	}
	w.calls.take()
	before, err := w.admin.Inventory(ctx)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
	}
	after, err := w.admin.Inventory(ctx)
	if err != nil {
		return err
	}
	lists, others := 0.0, int64(0)
	for method, n := range after.Calls {
		if n -= before.Calls[method]; method == "List" {
			lists = float64(n) / (wait.Seconds() / period.Seconds())
		} else {
			others += n
		}
	}
	b.Print(runner.Line{Name: "M2.list", Ours: fmt.Sprint(others), Bar: "0", Good: others == 0 && lists <= 1.2,
		More: fmt.Sprintf("calls of the provider besides List in %v; %.2f Lists a period of %v", wait, lists, period)})
	writes := w.calls.take()
	b.Print(runner.Line{Name: "M2.writes", Ours: fmt.Sprint(writes.writes()), Bar: "0", Good: writes.writes() == 0, More: writes.String()})
	return nil
}
