// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/compat"
	"github.com/belayproject/belay/internal/informer"
	"github.com/belayproject/belay/internal/option"
)

// askAgain is the pause between two questions to the canary about the same version. The watch may bring it before the answer to its own
// request does.
const askAgain = 50 * time.Millisecond

// A View says which members are alive.
type View struct {
	config     ViewConfig
	clock      Clock
	canary     types.NamespacedName
	wake       chan struct{} // has room for one
	deliveries sync.WaitGroup

	mu          sync.Mutex
	watch       sourceWatch
	tracker     *tracker
	index       *index
	echo        echo
	settling    settling
	subscribers map[*subscriber]bool
	told        viewFigures // by Run alone
}

// A sourceWatch is how far Run is with the Source.
type sourceWatch struct {
	started, running bool
	handle           cache.ResourceEventHandlerRegistration // nil before; a Source may give none
}

// hasListed reports whether all of the first list was handed over, as far as the Source tells.
func (w sourceWatch) hasListed() bool { return w.handle == nil || w.handle.HasSynced() }

// An echo is the version of the canary's Lease that the watch has brought last, until the canary has said when it was sent.
type echo struct {
	version string        // empty if nothing is to be asked
	until   time.Duration // when the answer is of no use any more
	again   time.Duration // when to ask next
}

// NewView returns a View. An error names the field, its value and what would be right.
func NewView(c ViewConfig) (*View, error) {
	c = c.complete()
	if err := c.validate(); err != nil {
		return nil, err
	}
	source, _ := c.Source.(lister)
	return &View{
		config: c, clock: c.Clock, canary: c.Canary.Key(), wake: make(chan struct{}, 1), tracker: newTracker(&c), index: newIndex(c.IndexBy),
		settling: settling{source: source}, subscribers: map[*subscriber]bool{},
	}, nil
}

// Run watches until ctx ends, and returns when no handler of a subscriber runs any more. Run can be called once: a
// second call returns [ErrRunning].
//
// The caller runs the Source. Of an informer that is not started within a second, that has stopped, or that holds no
// whole Leases, Run returns an error, which names ViewConfig.Source.
func (v *View) Run(ctx context.Context) error {
	if v.clock == nil {
		return option.NotMade("identity.View.Run", "identity.NewView")
	}
	if err := v.start(); err != nil {
		return err
	}
	defer v.tellEnd()
	defer v.stop()
	ctx, end := context.WithCancelCause(ctx)
	handle, err := v.config.Source.AddEventHandler(handler{v, end})
	if err != nil {
		end(nil)
		return fmt.Errorf("view: watching the Leases: %w", err)
	}
	v.mu.Lock()
	v.watch.handle = handle
	v.mu.Unlock()
	var watching sync.WaitGroup
	if i, ok := v.config.Source.(informer.Interface); ok {
		watching.Go(func() {
			if err := informer.WatchRunning(ctx, sourceOption, i); err != nil {
				end(err)
			}
		})
	}
	for ctx.Err() == nil {
		next, due := v.pass(ctx)
		v.rest(ctx, next, due)
	}
	watching.Wait()
	err = v.config.Source.RemoveEventHandler(handle)
	if wrong, ok := compat.AsType[*informer.Error](context.Cause(ctx)); ok {
		return fmt.Errorf("view: %w", wrong)
	}
	if err != nil {
		return fmt.Errorf("view: ending the watch of the Leases: %w", err)
	}
	return nil
}

func (v *View) start() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.watch.started {
		return fmt.Errorf("view: %w", ErrRunning)
	}
	v.watch.started, v.watch.running = true, true
	return nil
}

// stop ends the deliveries. From then on nothing changes.
func (v *View) stop() {
	v.mu.Lock()
	v.watch.running = false
	v.mu.Unlock()
	v.deliveries.Wait()
}

// tellEnd tells the metric that the view is not up to date any more.
func (v *View) tellEnd() {
	was, is := v.told, v.told
	is.fresh = false
	v.told = is
	v.config.Metrics.tell(was, is, nil)
}

// rest waits until something is to be done: at the elapsed time next if due is set.
func (v *View) rest(ctx context.Context, next time.Duration, due bool) {
	var timer <-chan time.Time
	if due {
		c, stop := v.clock.Timer(max(shortNap, next-v.clock.Elapsed()))
		defer stop()
		timer = c
	}
	select {
	case <-ctx.Done():
	case <-timer:
	case <-v.wake:
	}
}

// pass makes the changes that are due, and returns when the next are.
func (v *View) pass(ctx context.Context) (next time.Duration, due bool) {
	v.mu.Lock()
	now := v.clock.Elapsed()
	v.ask(now)
	changes := v.tracker.evaluate(now)
	v.publish(changes)
	next, due = v.tracker.next(now)
	if v.echo.version != "" && (!due || v.echo.again < next) {
		next, due = v.echo.again, true
	}
	was, is := v.told, v.figures(now)
	v.told = is
	v.mu.Unlock()
	var losses []time.Duration
	for _, c := range changes {
		if c.what == Left {
			losses = append(losses, c.peer.quiet)
		}
	}
	v.log(klog.FromContext(ctx), was, is, len(losses))
	v.config.Metrics.tell(was, is, losses)
	return next, due
}

func (v *View) log(logger klog.Logger, was, is viewFigures, losses int) {
	if losses > 0 {
		logger.V(2).Info("Lost members", "count", losses, "alive", is.alive, "suspect", is.suspect)
	}
	if was.fresh != is.fresh {
		logger.V(2).Info("View changed its freshness", "fresh", is.fresh, "canary", v.canary)
	}
	if was.brake != is.brake {
		logger.Info("Mass-loss brake changed", "on", is.brake, "alive", is.alive, "suspect", is.suspect)
	}
}

func (v *View) figures(now time.Duration) viewFigures {
	t := v.tracker
	return viewFigures{
		unconfirmed: t.unconfirmed.n, alive: t.alive.n, suspect: t.suspect.n + t.held.n, lost: t.lost.n,
		fresh: t.clock.fresh(now), brake: t.held.n > 0,
	}
}

// publish hands changes to the subscribers. The caller holds the mutex.
func (v *View) publish(changes []change) {
	for s := range v.subscribers {
		v.queue(s, changes)
	}
}

// ask asks the canary when the version was sent that was seen last, if that is not known yet. The caller holds the mutex.
func (v *View) ask(now time.Duration) {
	if v.echo.version == "" || now < v.echo.again {
		return
	}
	ago, ok := v.config.Canary.Written(v.echo.version)
	switch {
	case ok:
		v.tracker.prove(now, now-max(0, ago))
		v.settling.begin(v.echo.version)
		v.echo = echo{}
	case now >= v.echo.until:
		v.echo = echo{}
	default:
		v.echo.again = now + askAgain
	}
}

// seen takes note of a Lease.
func (v *View) seen(lease *coordinationv1.Lease, initial bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.watch.running {
		return
	}
	key, now := keyOf(lease), v.clock.Elapsed()
	var old *coordinationv1.Lease
	if r := v.tracker.records[key]; r != nil {
		old = r.lease
	}
	changes := v.tracker.observe(now, lease, initial)
	v.index.update(v.tracker.records[key], old, lease)
	v.publish(changes)
	if key == v.canary && (old == nil || old.ResourceVersion != lease.ResourceVersion) {
		v.echo = echo{version: lease.ResourceVersion, until: now + v.config.FreshFor}
		v.ask(now)
		v.rouse()
	} else if v.settling.over(lease.ResourceVersion) {
		v.tracker.clock.settle()
		v.rouse()
	}
	if old == nil || len(changes) > 0 {
		v.rouse()
	}
}

// gone takes note that a Lease was deleted.
func (v *View) gone(key types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.tracker.records[key]
	if r == nil || !v.watch.running {
		return
	}
	v.index.update(r, r.lease, nil)
	v.publish(v.tracker.forget(v.clock.Elapsed(), key))
	v.rouse()
}

// rouse makes Run look what is due.
func (v *View) rouse() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// Peers returns the peers in one of the states, all if none is given, by name.
func (v *View) Peers(states ...State) []Peer {
	if v.clock == nil {
		return nil
	}
	v.mu.Lock()
	seen := v.glimpses(v.clock.Elapsed(), states)
	v.mu.Unlock()
	return peers(seen)
}

// glimpses returns the peers in one of the states, all if none is given. The caller holds the mutex.
func (v *View) glimpses(now time.Duration, states []State) []glimpse {
	at := v.tracker.clock.read(now)
	var seen []glimpse
	for _, r := range v.tracker.records {
		if in(r, states) {
			seen = append(seen, r.glimpse(at))
		}
	}
	return seen
}

func in(r *record, states []State) bool {
	return len(states) == 0 || slices.Contains(states, r.roll.state)
}

// Get returns one peer.
func (v *View) Get(key types.NamespacedName) (Peer, bool) {
	if v.clock == nil {
		return Peer{}, false
	}
	v.mu.Lock()
	r, ok := v.tracker.records[key]
	if !ok {
		v.mu.Unlock()
		return Peer{}, false
	}
	s := r.glimpse(v.tracker.clock.read(v.clock.Elapsed()))
	v.mu.Unlock()
	return s.peer(), true
}

// Indexed returns the peers that the function of [ViewConfig].IndexBy has put under value, by name. There are none under an unknown index.
func (v *View) Indexed(index, value string, states ...State) []Peer {
	if v.clock == nil {
		return nil
	}
	v.mu.Lock()
	at := v.tracker.clock.read(v.clock.Elapsed())
	var seen []glimpse
	for r := range v.index.sets[indexed{index, value}] {
		if in(r, states) {
			seen = append(seen, r.glimpse(at))
		}
	}
	v.mu.Unlock()
	return peers(seen)
}

// Freshness says whether a view is up to date.
type Freshness struct {
	// Fresh is whether the whole first list was seen, and a write of the canary that was sent less than FreshFor ago.
	Fresh bool
	// Age is how long ago the last write was sent of those that were seen; negative if none was.
	Age time.Duration
	// Held is how many peers the mass-loss brake holds back.
	Held int
}

// Freshness says whether the view is up to date.
func (v *View) Freshness() Freshness {
	if v.clock == nil {
		return Freshness{}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now, t := v.clock.Elapsed(), v.tracker
	f := Freshness{Fresh: v.watch.running && v.watch.hasListed() && t.clock.fresh(now), Age: -1, Held: t.held.n}
	if t.clock.seen {
		f.Age = now - t.clock.sent
	}
	return f
}

// Healthy returns nil while the view is up to date and no brake holds, and otherwise why not.
func (v *View) Healthy() error {
	if v.clock == nil {
		return option.NotMade("identity.View.Healthy", "identity.NewView")
	}
	switch f := v.Freshness(); {
	case !v.runs():
		return errors.New("view: it does not run")
	case !f.Fresh && f.Age >= 0 && f.Age < v.config.FreshFor:
		return errors.New("view: it has not seen the whole first list of the Leases yet")
	case !f.Fresh && f.Age < 0:
		return fmt.Errorf("view: no write of its canary %q was seen yet", v.canary)
	case !f.Fresh:
		return fmt.Errorf("view: the last write of its canary %q that was seen is %v old, want less than %v", v.canary, f.Age, v.config.FreshFor)
	case f.Held > 0:
		return fmt.Errorf("view: %d held back by the mass-loss brake: more than %.0f %% of the peers would be lost at once", f.Held, 100*v.config.MassLoss)
	}
	return nil
}

func (v *View) runs() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.watch.running
}
