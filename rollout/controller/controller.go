// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/conversion"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// Options are what a Controller is made of. Ledger, Rollouts, Fleet and Shadows are required; a nil of the others
// means what stands there.
type Options struct {
	// Domain is the name of the disruption domain: the key of [Controller.Reconcile]. Empty means that any key is it.
	Domain   string
	Ledger   rollout.LedgerStore
	Rollouts Rollouts
	Fleet    Fleet
	Shadows  Shadows
	// Drainer is for intrusive revisions. Nil means that their nodes are never empty: they wait, and say so.
	Drainer Drainer
	// Health of nodes: kube.Health, or one's own. Nil means that a node which is ready is well.
	Health Health
	// Gates are asked in order. None means that the fleet always allows.
	Gates []Gate
	// StageGates are asked while a rollout is at a stage that names them, as they are named here, and are heard when
	// that stage is over: a smoke test, or what a person has to look at. Nothing else waits for them. None means that a
	// stage which names one is not passed unless somebody promotes it.
	StageGates map[string]Gate
	// Caps are those of others who use the ledger, as a [rollout.Slots]: they bind every rollout.
	Caps []protocol.Cap
	// Off says why nothing may be begun in the domain, empty that it may: the switch of the operator. It is asked again
	// before an admission is stored, and every second while nodes wait for it. What has begun goes on. Nil means on.
	Off func() string
	// OwnNode is the name of the node that the controller runs on. It goes last.
	OwnNode string
	// Notify is told of each phase. Nil means nobody is.
	Notify func(Notice)
	// Recorder gets an event on each edge. Nil means none.
	Recorder Recorder
	Metrics  Metrics
	// CallTimeout bounds each call. Zero means 10 seconds.
	CallTimeout time.Duration
	// ShowEvery is how long what a rollout only shows waits for more of it before it is written: texts and numbers for
	// people, which nodes are on their way and which have got there. What would not be found again does not wait: a
	// phase, a failure, a request, that no node commits any more. Zero means 10 seconds.
	ShowEvery time.Duration
}

// A Controller carries out the rollouts of one disruption domain. Make it with [New].
type Controller struct {
	o       Options
	running atomic.Bool   // by Run
	turn    chan struct{} // full while a pass runs
	mind    mind          // of whoever has the turn
	equal   conversion.Equalities
}

// A mind is what saves calls. All of it may be lost.
type mind struct {
	planner rollout.Planner
	// drains are how far nodes are, back those whose attempt was given back, by UID.
	drains map[string]drained
	back   map[string]protocol.Attempt
	// revisions are the names that metrics were told, shown the rollouts.
	revisions map[string]bool
	shown     map[string]bool
	// showAt is when what rollouts only show may be written again, sure when the ledger was read as it is stored.
	showAt, sure time.Time
	// elsewhere are when the nodes and rollouts of other domains were found to be there, by UID.
	elsewhere map[string]time.Time
	// ahead is what was decided of rollouts and not stored yet, acknowledged those of which it was stored that no node
	// of theirs commits, by UID.
	ahead        map[string]ahead
	acknowledged map[string]bool
	// overlaps are the rollouts that selected nodes of others when they were planned last, by UID; seen is memory for
	// the nodes as such a one is to see them.
	overlaps map[string]bool
	seen     []rollout.Node
	// orphans is what was decided of rollouts that are gone and have left slots, by UID.
	orphans map[string]rollout.Progress
	// cuts is how many passes in a row were cut short.
	cuts int
}

// A drained says how far the drain of an attempt is.
type drained struct {
	attempt protocol.Attempt
	drain   rollout.Drain
}

const (
	defaultCall = 10 * time.Second
	defaultShow = 10 * time.Second
	// offAgain is how long it takes until it is noticed that the operator was switched on again.
	offAgain = time.Second
	// soon is when to look again after something that is over at once.
	soon = 200 * time.Millisecond
	// trust is how long the ledger that is seen is believed in after it was read as it is stored: as long as a leader
	// that was frozen is still the leader, by the usual length of a lease. elsewhere is how long it is believed that
	// something is in another domain.
	trust     = 15 * time.Second
	elsewhere = time.Minute
	// attend is how long a slot is left alone at most: what wakes a controller may have been missed.
	attend = 2500 * time.Millisecond
	// tries bounds how often a pass begins anew as something has changed under it, rounds how often it goes on at once.
	tries  = 5
	rounds = 4
)

// New returns a controller. It calls nothing yet. The error names the option that is missing or wrong.
func New(o Options) (*Controller, error) {
	check := option.For("rollout/controller.New", nil)
	check.Require("Options.Ledger", o.Ledger, "see rollout/kube.NewLedgerStore")
	check.Require("Options.Rollouts", o.Rollouts, "see rollout/kube.NewRollouts")
	check.Require("Options.Fleet", o.Fleet, "see rollout/kube.NewFleet")
	check.Require("Options.Shadows", o.Shadows, "see rollout/kube.NewRecords")
	if err := o.check(check); err != nil {
		return nil, err
	}
	o.CallTimeout, o.ShowEvery = cmp.Or(o.CallTimeout, defaultCall), cmp.Or(o.ShowEvery, defaultShow)
	sameTime := conversion.EqualitiesOrDie(func(a, b time.Time) bool { return a.Equal(b) }) // empty is equal to nil
	return &Controller{o: o, turn: make(chan struct{}, 1), equal: sameTime, mind: mind{
		drains: map[string]drained{}, back: map[string]protocol.Attempt{}, revisions: map[string]bool{}, shown: map[string]bool{}, showAt: time.Now().Add(o.ShowEvery),
		elsewhere: map[string]time.Time{}, ahead: map[string]ahead{}, acknowledged: map[string]bool{},
		orphans: map[string]rollout.Progress{}, overlaps: map[string]bool{},
	}}, nil
}

// check finds what is wrong with the options beside those that are missing.
func (o Options) check(c *option.Checker) error {
	for i, g := range o.Gates {
		if g == nil {
			c.Wrong("Options.Gates[%d] is nil", i)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.StageGates)) {
		if o.StageGates[name] == nil {
			c.Wrong("Options.StageGates[%q] is nil", name)
		}
	}
	if o.CallTimeout < 0 {
		c.Wrong("Options.CallTimeout is %s, want 0 or more", o.CallTimeout)
	}
	if o.ShowEvery < 0 {
		c.Wrong("Options.ShowEvery is %s, want 0 or more", o.ShowEvery)
	}
	return c.Err()
}

// Reconcile makes a pass: it does all that can be done now. The key is the name of the disruption domain; any event
// of a Node, a shadow, a rollout or the ledger of the domain maps to that one key. One that is not [Options].Domain
// is an error, unless that is empty. requeueAfter is when to call it again though nothing has changed; zero means not
// before. After an error it is to be called again, backing off: what could be done was done.
func (c *Controller) Reconcile(ctx context.Context, domain string) (requeueAfter time.Duration, err error) {
	if c.o.Domain != "" && domain != c.o.Domain {
		return 0, fmt.Errorf("rollout/controller: reconciling domain %q: this controller is that of domain %q", domain, c.o.Domain)
	}
	_, requeueAfter, err = c.pass(ctx)
	return requeueAfter, err
}

// An effort is what a pass took, and what for.
type effort struct {
	took     time.Duration
	writes   int    // of something new
	inFlight bool   // a slot goes on
	asked    string // what people wanted when it began
}

func (c *Controller) pass(ctx context.Context) (e effort, after time.Duration, err error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return e, 0, ctx.Err()
	}
	defer func() { <-c.turn }()
	began := time.Now()
	for i := 0; i < tries; i++ {
		p := &pass{c: c, ctx: ctx, live: i > 0}
		err = p.run()
		e.writes, e.inFlight, e.asked = e.writes+p.writes-p.repeated, slices.ContainsFunc(p.ledger.Slots, goesOn), p.asked
		if c.mind.cutShort(err) && ctx.Err() == nil {
			i-- // what it has decided on was no older than it should be
			continue
		}
		if after = p.after; !errors.Is(err, errAgain) || ctx.Err() != nil {
			break
		}
	}
	if errors.Is(err, errAgain) { // others are at work: theirs is as good
		after, err = soon, nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	e.took = time.Since(began)
	if f := c.o.Metrics.Pass; f != nil {
		f(e.took, err)
	}
	return e, after, err
}

// goesOn reports whether a slot is one that a controller brings further. One that is marked waits for its node or for
// people, one that is lent for its holder.
func goesOn(s protocol.Slot) bool {
	_, _, lent := s.Borrower()
	return s.State == "" && !lent
}

// errAgain means that something has changed since it was read, so that what was decided must not be written.
var errAgain = errors.New("it has changed since it was read")

// errUnstored means that a rollout can't be carried out, as nobody would remember it.
var errUnstored = errors.New("its status can't be written")

// A pass is one try of [Controller.Reconcile]. Errors of single nodes are collected and stop nothing else.
type pass struct {
	c     *Controller
	ctx   context.Context
	now   time.Time
	off   string
	after time.Duration
	errs  []error
	live  bool // the ledger is to be read as it is stored
	asked string
	calls int // how many were made
	// writes is how many of them write, repeated how many of those have only said again why nothing is decided, flying
	// is memory for the slots whose attempts go on.
	writes, repeated int
	flying           []protocol.Slot

	ledger   protocol.Ledger
	version  string
	rollouts []Rollout
	stored   map[string]rollout.Progress // by UID of the rollout; what the rollouts have may be ahead of it
	refused  map[string]error            // likewise
	decided  []rollout.Decisions
	owners   []int             // the numbers of the rollouts that the nodes belong to, -1 for none
	holders  map[string]string // the UIDs of the rollouts that have slots, by UID of the node; nil before the first is asked for
	shown    []int             // rollouts of which there is nothing new to remember
	nodes    []nodeView
	byUID    map[string]int
	shadows  []Shadow
	gates    []rollout.Verdict
	snapshot []rollout.Node
}

// A nodeView is a Node with what belongs to it.
type nodeView struct {
	Node
	shadow *Shadow
	mark   mark
	// attempt is for which the drainer holds the node.
	attempt protocol.Attempt
	held    bool
	// selected by any rollout.
	selected bool
}

// again asks to be called again in d, if that is not to happen sooner.
func (p *pass) again(d time.Duration) {
	if d > 0 && (p.after == 0 || d < p.after) {
		p.after = d
	}
}

// note collects an error of one node. A conflict is none: somebody else was first, and the next pass sees what has
// become of it.
func (p *pass) note(format string, err error, args ...any) {
	if errors.Is(err, rollout.ErrConflict) || errors.Is(err, protocol.ErrRefused) {
		p.again(soon)
		return
	}
	p.errs = append(p.errs, fmt.Errorf(format+": %w", append(args, err)...))
}

// call makes one call with its deadline.
func (p *pass) call(f func(context.Context) error) error {
	p.calls++
	ctx, cancel := context.WithTimeout(p.ctx, p.c.o.CallTimeout)
	defer cancel()
	return f(ctx)
}
