// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/bench/runner"
	"github.com/belayproject/belay/internal/testenv"
)

// mostAdoption is the bar of F1, for the ratio to the bare limit.
const mostAdoption = 1.5

// memory is a file system that is none of a disk.
const memory = "/dev/shm"

// A stage is where agents are assigned configs.
type stage struct {
	name string
	dir  string  // that agents write to
	kept string  // what that is
	bar  float64 // zero: none
}

// adoptions is F1. A thousand nodes have a thousand disks, which are none of etcd's: no disk of this machine is like that, and memory is nearer to it.
func (b *bench) adoptions(ctx context.Context) error {
	return b.adopt(ctx, stage{"F1", cmp.Or(b.dir, memory), "in " + cmp.Or(b.dir, "memory"), mostAdoption})
}

// sharing is F1.shared: the same where all agents, and etcd, write to one disk.
func (b *bench) sharing(ctx context.Context) error {
	return b.adopt(ctx, stage{"F1.shared", cmp.Or(b.dir, os.TempDir()), "on the disk that etcd has", 0})
}

// A burst is how long it took until a config was active on each node of a side.
type burst struct {
	fleet []time.Duration // since the first node was assigned it
	own   []time.Duration // since that node was
	asked map[string]int
	busy  string
	work  work
}

// A side is agents or watchers, on nodes of their own.
type side struct {
	nodes []string
	seen  *observer
}

// adopt measures one stage. Both sides are there all the time, and take turns.
func (b *bench) adopt(ctx context.Context, on stage) (err error) {
	n := 1000
	if b.Quick {
		n, b.Repeats = 100, max(b.Repeats, 3)
	}
	n = cmp.Or(b.agents, n)
	hurried, err := unhurried()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hurried()) }()
	w, err := newWorld(ctx, on.dir, testenv.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	ctx, cancel := context.WithCancel(ctx)
	asks := &asks{n: map[string]int{}}
	ours, theirs, end, err := w.sides(ctx, n, asks)
	defer func() { cancel(); err = errors.Join(err, end()) }()
	if err != nil {
		return err
	}
	var all, limits []burst
	for i := range b.Repeats + 1 {
		our, err := w.burst(ctx, ours, asks)
		if err != nil {
			return fmt.Errorf("ours, repeat %d: %w", i, err)
		}
		limit, err := w.burst(ctx, theirs, asks)
		if err != nil {
			return fmt.Errorf("the limit, repeat %d: %w", i, err)
		}
		fmt.Fprintf(os.Stderr, "  repeat %d: ours %v, the limit %v\n", i, last(our.fleet), last(limit.fleet))
		if i > 0 { // everything is new to the disk and to the caches
			all, limits = append(all, our), append(limits, limit)
		}
	}
	b.printAdoptions(on, n, all, limits)
	return nil
}

// sides starts the agents and the watchers.
func (w *world) sides(ctx context.Context, n int, asks *asks) (ours, theirs *side, end func() error, err error) {
	var mu sync.Mutex
	var ends []func() error
	end = func() error {
		var errs []error
		for _, f := range ends {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}
	ours, theirs = &side{}, &side{}
	for i := range n {
		ours.nodes, theirs.nodes = append(ours.nodes, fmt.Sprintf("agent-%04d", i)), append(theirs.nodes, fmt.Sprintf("limit-%04d", i))
	}
	if err := each(n, func(i int) error { return errors.Join(w.node(ctx, ours.nodes[i]), w.node(ctx, theirs.nodes[i])) }); err != nil {
		return nil, nil, end, err
	}
	seen := w.observe(ctx)
	ours.seen, theirs.seen = seen, seen
	from := time.Now()
	err = each(n, func(i int) error {
		a, err := w.agent(ctx, ours.nodes[i], asks)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, a.end)
		}
		return err
	})
	if err != nil {
		return nil, nil, end, err
	}
	fmt.Fprintf(os.Stderr, "  %d agents are there after %v\n", n, time.Since(from).Round(time.Second))
	if _, err := w.burst(ctx, ours, asks); err != nil {
		return nil, nil, end, err
	}
	model, err := w.status(ctx, ours.nodes[0])
	if err != nil {
		return nil, nil, end, err
	}
	err = each(n, func(i int) error {
		l, err := w.watcher(ctx, theirs.nodes[i], model)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, l.end)
		}
		return err
	})
	return ours, theirs, end, err
}

// status is that of a node.
func (w *world) status(ctx context.Context, node string) (map[string]any, error) {
	u, err := w.all.Resource(v1alpha1.NodeConfigsResource).Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	status, _, err := unstructured.NestedMap(u.Object, "status")
	return status, err
}

// quiet is how long nobody must have written anything before a burst, nor asked for a config. Agents look at their objects, and watches begin anew, every
// few minutes all the time: of a thousand agents one always does.
const quiet = time.Second

// settled says whether that is all.
func settled(asked map[string]int) bool {
	for what := range asked {
		if strings.HasPrefix(what, "patch ") || strings.HasSuffix(what, " configmaps") {
			return false
		}
	}
	return true
}

// burst assigns a new config to all nodes of a side, as fast as the API server takes it.
func (w *world) burst(ctx context.Context, s *side, asks *asks) (b burst, err error) {
	for {
		asks.take()
		if !pause(ctx, quiet) {
			return b, ctx.Err()
		}
		if settled(asks.take()) {
			break
		}
	}
	cm, err := w.config(ctx)
	if err != nil {
		return b, err
	}
	s.seen.expect(string(cm.UID), len(s.nodes))
	gauge, err := runner.NewGauge(w.processes())
	if err != nil {
		return b, err
	}
	before, err := w.worked()
	if err != nil {
		return b, err
	}
	begun, assigned := time.Now(), make([]time.Time, len(s.nodes))
	err = each(len(s.nodes), func(i int) error {
		assigned[i] = time.Now()
		return w.assign(ctx, s.nodes[i], cm)
	})
	if err != nil {
		return b, err
	}
	active, err := s.seen.await(ctx)
	if err != nil {
		return b, err
	}
	if b.busy, err = gauge.Since(); err != nil {
		return b, err
	}
	for i, node := range s.nodes {
		b.fleet, b.own = append(b.fleet, active[node].Sub(begun)), append(b.own, active[node].Sub(assigned[i]))
	}
	pause(ctx, quiet) // what follows an adoption is a part of it
	b.asked = asks.take()
	after, err := w.worked()
	if err != nil {
		return b, err
	}
	b.work = after.since(before)
	return b, ctx.Err()
}

// An observer follows the status of all nodes.
type observer struct {
	mu     sync.Mutex
	uid    string
	left   int
	active map[string]time.Time
	done   chan struct{}
}

// observe begins to. A watch that ends is begun again: it brings all that is there first.
func (w *world) observe(ctx context.Context) *observer {
	o := &observer{done: make(chan struct{})}
	go func() {
		for ctx.Err() == nil {
			watch, err := w.all.Resource(v1alpha1.NodeConfigsResource).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				pause(ctx, 100*time.Millisecond)
				continue
			}
			for e := range watch.ResultChan() {
				if u, ok := e.Object.(*unstructured.Unstructured); ok {
					uid, _, _ := unstructured.NestedString(u.Object, "status", "active", "configMapRef", "uid")
					o.see(u.GetName(), uid)
				}
			}
			watch.Stop()
		}
	}()
	return o
}

// expect waits for that config from now on.
func (o *observer) expect(uid string, nodes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.uid, o.left, o.active, o.done = uid, nodes, map[string]time.Time{}, make(chan struct{})
}

func (o *observer) see(node, uid string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.active[node]; known || uid == "" || uid != o.uid {
		return
	}
	o.active[node] = time.Now()
	if o.left--; o.left == 0 {
		close(o.done)
	}
}

// await returns when each node said that the config is active.
func (o *observer) await(ctx context.Context) (map[string]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-o.done:
		return o.active, nil
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		return nil, fmt.Errorf("waiting for the config to be active on %d more nodes: %w", o.left, ctx.Err())
	}
}

// last is when all but one of a hundred were there.
func last(times []time.Duration) time.Duration {
	return runner.Figures[time.Duration](times).Quantile(0.99).Round(time.Millisecond)
}

// worst is the time that 99 of 100 nodes don't exceed.
func worst(all []burst, times func(burst) []time.Duration) runner.Figures[time.Duration] {
	return runner.Each(all, func(b burst) time.Duration { return last(times(b)) })
}

func (b *bench) printAdoptions(on stage, n int, ours, limits []burst) {
	fleet := func(b burst) []time.Duration { return b.fleet }
	own := func(b burst) []time.Duration { return b.own }
	our, limit := worst(ours, fleet), worst(limits, fleet)
	ratio := float64(our.Median()) / float64(limit.Median())
	line := runner.Line{
		Name: on.name + ".active", Ours: our.String(), Peer: limit.String(), Ratio: runner.Over(our.Median(), limit.Median()),
		More: fmt.Sprintf("99 of 100 of %d nodes, all of which are assigned the config at once, since the first was; what agents keep is %s; the peer answers each assignment "+
			"with one write of as large a status; medians of %d; ours: %s; peer: %s", n, on.kept, len(ours), ours[len(ours)-1].busy, limits[len(limits)-1].busy),
	}
	if on.bar > 0 {
		line.Bar, line.Good = fmt.Sprint(on.bar), ratio <= on.bar
	}
	b.Print(line)
	our, limit = worst(ours, own), worst(limits, own)
	b.Print(runner.Line{
		Name: on.name + ".own", Ours: our.String(), Peer: limit.String(), Ratio: runner.Over(our.Median(), limit.Median()),
		More: "the same since that node itself was assigned it",
	})
	b.printWork(on.name, n, ours, limits)
	b.printAsked(on.name, n, ours)
}

func (b *bench) printAsked(name string, n int, ours []burst) {
	asked, total := map[string]int{}, 0
	for _, b := range ours {
		for what, k := range b.asked {
			asked[what] += k
			total += k
		}
	}
	b.Print(runner.Line{
		Name: name + ".requests", Ours: fmt.Sprintf("%.2f", float64(total)/float64(n*len(ours))), Peer: "1",
		More: "of an agent for an adoption: " + list(asked, n*len(ours)),
	})
}

// list lists what was asked for, the most frequent first, for one of so many.
func list(calls map[string]int, n int) string {
	names := slices.SortedFunc(maps.Keys(calls), func(a, b string) int { return cmp.Or(calls[b]-calls[a], strings.Compare(a, b)) })
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = fmt.Sprintf("%.2f %s", float64(calls[name])/float64(n), name)
	}
	return strings.Join(texts, ", ")
}
