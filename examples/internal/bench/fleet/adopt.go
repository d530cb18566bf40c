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
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/internal/bench/runner"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/internal/testenv"
)

// mostAdoption is the bar of F1, for the ratio to the bare limit.
const mostAdoption = 1.5

// memory is a file system that is none of a disk.
const memory = "/dev/shm"

// A stage is where agents are assigned configs.
type stage struct {
	name    string
	dir     string  // that agents write to
	kept    string  // what that is
	bar     float64 // zero: none
	plain   bool    // there are also turns of the peer with plain writes
	paced   bool    // what takes time is the processors: times are given at one pace of them
	repeats int
}

// adoptions is F1. A thousand nodes have a thousand disks, which are none of etcd's: no disk of this machine is like that, and memory is nearer to it.
func (b *bench) adoptions(ctx context.Context) error {
	return b.adopt(ctx, stage{"F1", cmp.Or(b.dir, memory), "in " + cmp.Or(b.dir, "memory"), mostAdoption, true, true, b.Repeats})
}

// sharing is F1.shared: the same where all agents, and etcd, write to one disk. Nothing is judged by it, so that it has fewer repeats.
func (b *bench) sharing(ctx context.Context) error {
	return b.adopt(ctx, stage{"F1.shared", cmp.Or(b.dir, os.TempDir()), "on the disk that etcd has", 0, false, false, min(b.Repeats, 3)})
}

// A burst is how long it took until a config was active on each node of a side.
type burst struct {
	fleet []time.Duration // since the first node was assigned it
	own   []time.Duration // since that node was
	given time.Duration   // until the last node was assigned it
	pace  time.Duration   // of the machine meanwhile
	asked map[string]int
	busy  string
	work  work
}

// A side is agents or watchers, on nodes of their own.
type side struct {
	nodes []string
	seen  *observer
	plain atomic.Bool // how watchers write
}

// A turn is what one of those that take turns has done: all bursts but the first, as everything is new to the disk and to the caches then.
type turn struct {
	name   string
	burst  func(context.Context) (burst, error)
	bursts []burst
}

// adopt measures one stage. Both sides are there all the time, and take turns.
func (b *bench) adopt(ctx context.Context, on stage) (err error) {
	n := 1000
	if b.Quick {
		n, on.repeats = 100, max(on.repeats, 3)
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
	turns := w.turns(ours, theirs, asks, on.plain)
	if err := take(ctx, turns, on.repeats); err != nil {
		return err
	}
	b.printAdoptions(on, n, turns)
	return nil
}

// turns are ours, the limit's, and if plain is set those of the limit with plain writes.
func (w *world) turns(ours, theirs *side, asks *asks, plain bool) []*turn {
	limit := func(writesPlain bool) func(context.Context) (burst, error) {
		return func(ctx context.Context) (burst, error) {
			theirs.plain.Store(writesPlain)
			return w.burst(ctx, theirs, asks)
		}
	}
	turns := []*turn{
		{name: "ours", burst: func(ctx context.Context) (burst, error) { return w.burst(ctx, ours, asks) }},
		{name: "the limit", burst: limit(false)},
	}
	if plain {
		turns = append(turns, &turn{name: "the limit with plain writes", burst: limit(true)})
	}
	return turns
}

// take has all take so many turns, and one more at the beginning that does not count. Whoever was first in one round is last in the next.
func take(ctx context.Context, turns []*turn, repeats int) error {
	for i := range repeats + 1 {
		var lasts []string
		for k := range turns {
			t := turns[(i+k)%len(turns)]
			got, err := t.burst(ctx)
			if err != nil {
				return fmt.Errorf("%s, repeat %d: %w", t.name, i, err)
			}
			if lasts = append(lasts, fmt.Sprintf("%s %v", t.name, last(got.fleet))); i > 0 {
				t.bursts = append(t.bursts, got)
			}
		}
		fmt.Fprintf(os.Stderr, "  repeat %d: %s\n", i, strings.Join(lasts, ", "))
	}
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
	err = each(n, func(i int) error {
		_, err1 := w.node(ctx, ours.nodes[i])
		_, err2 := w.node(ctx, theirs.nodes[i])
		return errors.Join(err1, err2)
	})
	if err != nil {
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
		l, err := w.watcher(ctx, theirs.nodes[i], model, &theirs.plain)
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

// calm waits until nothing is asked for.
func calm(ctx context.Context, asks *asks) error {
	for {
		asks.take()
		if !backoff.Sleep(ctx, quiet) {
			return ctx.Err()
		}
		if settled(asks.take()) {
			return nil
		}
	}
}

// burst assigns a new config to all nodes of a side, as fast as the API server takes it.
func (w *world) burst(ctx context.Context, s *side, asks *asks) (b burst, err error) {
	if err := calm(ctx, asks); err != nil {
		return b, err
	}
	cm, err := w.config(ctx)
	if err != nil {
		return b, err
	}
	s.seen.expect(string(cm.UID), len(s.nodes))
	before, err := w.worked()
	if err != nil {
		return b, err
	}
	meanwhile, err := newPace(ctx)
	if err != nil {
		return b, err
	}
	b, err = w.assignAll(ctx, s, cm)
	took, err1 := meanwhile.end()
	if err = errors.Join(err, err1); err != nil {
		return b, err
	}
	b.pace = took
	backoff.Sleep(ctx, quiet) // what follows an adoption is a part of it
	b.asked = asks.take()
	after, err := w.worked()
	if err != nil {
		return b, err
	}
	b.work = after.since(before)
	return b, ctx.Err()
}

// assignAll assigns a config to all nodes of a side, and waits until it is active on them.
func (w *world) assignAll(ctx context.Context, s *side, cm *corev1.ConfigMap) (b burst, err error) {
	gauge, err := runner.NewGauge(w.processes())
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
	b.given = time.Since(begun)
	active, err := s.seen.await(ctx)
	if err != nil {
		return b, err
	}
	for i, node := range s.nodes {
		b.fleet, b.own = append(b.fleet, active[node].Sub(begun)), append(b.own, active[node].Sub(assigned[i]))
	}
	b.busy, err = gauge.Since()
	return b, err
}

// last is when all but one of a hundred were there.
func last(times []time.Duration) time.Duration {
	return runner.Figures[time.Duration](times).Quantile(0.99).Round(time.Millisecond)
}

// worst is the time that 99 of 100 nodes don't exceed.
func worst(all []burst, times func(burst) []time.Duration) runner.Figures[time.Duration] {
	return runner.Each(all, func(b burst) time.Duration { return last(times(b)) })
}

func (b *bench) printAdoptions(on stage, n int, measured []*turn) {
	turns, pace := measured, "by the clock"
	if on.paced {
		turns, pace = evened(measured), "at one pace of the machine"
	}
	ours, limits := turns[0].bursts, turns[1].bursts
	fleet := func(b burst) []time.Duration { return b.fleet }
	given := func(bs []burst) string {
		return runner.Each(bs, func(b burst) time.Duration { return b.given }).String()
	}
	our, limit := worst(ours, fleet), worst(limits, fleet)
	line := runner.Line{
		Name: on.name + ".active", Ours: our.String(), Peer: limit.String(), Ratio: runner.Over(our.Median(), limit.Median()),
		More: fmt.Sprintf("99 of 100 of %d nodes, all of which are assigned the config at once, since the first was; the last was after %s, peer %s; what agents keep is %s; "+
			"the peer answers each assignment with one write of as large a status; medians of %d, %s; ours: %s; peer: %s",
			n, given(ours), given(limits), on.kept, len(ours), pace, ours[len(ours)-1].busy, limits[len(limits)-1].busy),
	}
	if on.bar > 0 {
		line.Bar, line.Good = fmt.Sprint(on.bar), float64(our.Median())/float64(limit.Median()) <= on.bar
	}
	b.Print(line)
	if on.paced {
		b.printTimes(on.name+".clock", measured[0].bursts, measured[1].bursts, fleet, "the same as it was by the clock, each burst at the pace that the machine had")
		b.printPace(on.name, measured[0].bursts, measured[1].bursts)
	}
	b.printTimes(on.name+".own", ours, limits, func(b burst) []time.Duration { return b.own }, "as "+on.name+".active since that node itself was assigned it")
	if on.plain {
		b.printTimes(on.name+".plain", ours, turns[2].bursts, fleet, "as "+on.name+".active, where the peer writes by a merge patch only what an assignment changes")
	}
	b.printWork(on.name, n, ours, limits)
	b.printAsked(on.name, n, ours)
}

// printTimes prints times that have no bar.
func (b *bench) printTimes(name string, ours, peers []burst, times func(burst) []time.Duration, more string) {
	our, peer := worst(ours, times), worst(peers, times)
	b.Print(runner.Line{Name: name, Ours: our.String(), Peer: peer.String(), Ratio: runner.Over(our.Median(), peer.Median()), More: more})
}

// printPace prints how fast the machine was for each side: what it took for the same, in microseconds.
func (b *bench) printPace(name string, ours, peers []burst) {
	us := func(b burst) float64 { return float64(b.pace) / float64(time.Microsecond) }
	our, peer := runner.Each(ours, us), runner.Each(peers, us)
	b.Print(runner.Line{
		Name: name + ".pace", Ours: our.String() + "us", Peer: peer.String() + "us", Ratio: runner.Over(our.Median(), peer.Median()),
		More: "of a processor for a fixed piece of work, beside each burst",
	})
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
