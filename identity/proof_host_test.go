// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/identity/identitytest"
)

// A host is a machine on which one process runs at a time, or with others of the same lock file a part of one.
type host struct {
	u        *universe
	name, id string // of its Lease, and its own
	machine  string
	lock     string // "" for none
	clock    *identitytest.Clock
	rate     float64
	observes bool
	starts   int
	life     *life         // the latest
	sleeps   atomic.Uint64 // how often it was suspended
	asleep   time.Time     // until then, unless somebody wakes it
}

// A life is one process: a member, and on an observer also a view with its collector.
type life struct {
	host   *host
	client string
	member *identity.Member
	feed   *feed
	cancel context.CancelFunc
	// over is set once it is killed or stopped, at the time asked; ended is closed when nothing of it runs any more.
	over  bool
	asked time.Time
	ended chan struct{}
	// hold ends with the context of the work; slept is the number of sleeps of the machine when the hold began.
	hold             context.Context
	epoch            identity.Epoch // of it
	slept, sleptThen uint64
}

func (l *life) alive() bool { return !l.over }

// start begins a process, if there is none.
func (h *host) start() {
	if h.life != nil && h.life.alive() {
		return
	}
	h.clock.Resume()
	h.starts++
	u := h.u
	l := &life{host: h, client: fmt.Sprintf("%s-%d", h.id, h.starts), ended: make(chan struct{})}
	leases := u.server.Client(namespace, l.client, h.clock)
	spec := goodSpec(h.machine)
	spec.LockFile = h.lock
	spec.Name, spec.Timing, spec.OnDuplicate = h.name, worldTiming(), identity.WaitOnDuplicate
	spec.KeepOnStop = u.r.IntN(4) == 0
	member, err := identity.New(leases, spec, identity.Options{Clock: h.clock})
	if err != nil {
		u.t.Fatal(err)
	}
	l.member = member
	ctx, cancel := context.WithCancel(u.ctx)
	l.cancel = cancel
	parts := []func(context.Context) error{func(ctx context.Context) error { return l.run(ctx) }}
	if h.observes {
		parts = append(parts, l.observe(leases)...)
	}
	h.life = l
	u.mu.Lock()
	u.lives = append(u.lives, l)
	u.mu.Unlock()
	go l.all(ctx, parts)
}

// all runs the parts of a process.
func (l *life) all(ctx context.Context, parts []func(context.Context) error) {
	defer close(l.ended)
	errs := make(chan error, len(parts))
	for _, part := range parts {
		go func() { errs <- part(ctx) }()
	}
	for range parts {
		if err := <-errs; err != nil && !errors.Is(err, context.Canceled) {
			l.host.u.wrong("%s ended with %v", l.client, err)
		}
	}
}

// observe makes the view and the collector of a process.
func (l *life) observe(leases *identitytest.Client) []func(context.Context) error {
	l.feed = newFeed(leases)
	view, err := identity.NewView(identity.ViewConfig{
		Source: l.feed, Canary: l.member, Liveness: worldLiveness, MassLossHold: worldLiveness, Clock: l.host.clock,
	})
	if err != nil {
		l.host.u.t.Fatal(err)
	}
	view.Subscribe(l.checkLoss)
	deletes := l.host.u.server.Client(namespace, l.collector(), l.host.clock)
	collector, err := identity.NewCollector(deletes, view, identity.CollectorConfig{GCAfter: worldGCAfter, Period: worldPeriod})
	if err != nil {
		l.host.u.t.Fatal(err)
	}
	return []func(context.Context) error{l.feed.run, view.Run, collector.Run}
}

// run runs the member. I8: it returns in time, unless the machine sleeps.
func (l *life) run(ctx context.Context) error {
	err := l.member.Run(ctx, l.work)
	if ctx.Err() == nil {
		return err
	}
	late := time.Since(l.asked) - worldTiming().Stop*21/20
	if late > time.Millisecond && l.host.sleeps.Load() == l.sleptThen {
		l.host.u.wrong("I8: Run of %s returned %v too late", l.client, late)
	}
	return err
}

// end ends a process as a signal does.
func (l *life) end() {
	l.over, l.asked, l.sleptThen = true, time.Now(), l.host.sleeps.Load()
	if l.asked.Before(l.host.asleep) {
		l.sleptThen--
	}
	l.cancel()
}

// kill ends it so that nothing of it reaches the server any more.
func (h *host) kill() {
	if h.life.alive() {
		h.life.cut()
		h.life.end()
		h.u.figures.killed++
	}
}

// stop ends it and lets it give its Lease back.
func (h *host) stop() {
	if h.life.alive() {
		h.life.end()
	}
}

// suspend lets the machine sleep for a time.
func (h *host) suspend(d time.Duration) {
	h.sleeps.Add(1)
	h.asleep = time.Now().Add(d)
	h.clock.Suspend()
	time.AfterFunc(d, h.clock.Resume)
}

// work is the work of a member. I1: no other process of the name holds it, and the work of each has been told so; I2: epochs grow.
func (l *life) work(ctx context.Context, e identity.Epoch) error {
	u, h := l.host.u, l.host
	if now, ok := l.member.Epoch(); ok && now == e { // else it has slept
		u.mu.Lock()
		l.hold, l.epoch, l.slept = ctx, e, h.sleeps.Load()
		u.figures.holds++
		last := u.epochs[h.name]
		u.epochs[h.name] = max(last, e.Number)
		rivals := u.rivals(l)
		u.mu.Unlock()
		if e.Number <= last {
			u.wrong("I2: epoch %d of %s after %d", e.Number, h.name, last)
		}
		for _, rival := range rivals {
			u.mu.Lock()
			u.figures.twice++
			u.mu.Unlock()
			u.wrong("I1: %s holds %s while %s does", l.client, h.name, rival)
		}
	}
	<-ctx.Done()
	return nil
}

// rivals are those who hold the name of a life beside it. The caller holds the mutex.
func (u *universe) rivals(l *life) []string {
	var found []string
	for _, other := range u.lives {
		if other == l || other.host.name != l.host.name {
			continue
		}
		if how := other.holds(identity.Epoch{}); how != "" {
			found = append(found, how)
		}
	}
	return found
}

// holds says how a process holds its name in this epoch, in any if it is the zero one; it is empty if it does not. The caller holds the mutex of the
// universe.
func (l *life) holds(epoch identity.Epoch) string {
	in := func(e identity.Epoch) bool { return epoch == identity.Epoch{} || e == epoch }
	e, holds := l.member.Epoch()
	holds = holds && in(e)
	works := l.hold != nil && l.hold.Err() == nil && l.slept == l.host.sleeps.Load() && in(l.epoch)
	if !holds && !works {
		return ""
	}
	return fmt.Sprintf("%s (holds %t, works %t)", l.client, holds, works)
}

// checkLoss is I6: nobody is called lost who holds, and whose work goes on. Who has given up and holds anew, in a later epoch, was lost all the same:
// the observer has not seen the new one yet.
func (l *life) checkLoss(e identity.Event) {
	if e.Reason != identity.LeftQuiet {
		return
	}
	u := l.host.u
	u.mu.Lock()
	u.figures.lost++
	how := ""
	for _, other := range u.lives {
		if other.host.name == e.Peer.Key.Name && how == "" {
			how = other.holds(e.Peer.Epoch)
		}
	}
	u.mu.Unlock()
	if how != "" {
		u.wrong("I6: %s calls %s lost, which is %s", l.client, e.Peer.Key.Name, how)
	}
}

// cut takes the network of a process away for ever.
func (l *life) cut() {
	for _, client := range []string{l.client, l.collector()} {
		l.host.u.server.Faults(identitytest.Fault{Client: client, Times: -1, Err: errDead})
	}
}

// collector is the name of the client with which a process collects.
func (l *life) collector() string { return "gc-" + l.client }
