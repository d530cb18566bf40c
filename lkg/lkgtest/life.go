// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/belayproject/belay/lkg"
)

// The bounds of one history: how many starts see things that come from outside, and how many come after the last of
// these. A history in which a bad config is kept is over sooner.
const (
	mostEventful = 60
	mostStarts   = 100
	mostKept     = 25
)

// A node is what a rule runs on.
type node struct {
	store   *Store
	tr      Tracker // of the running process, nil between two
	exit    lkg.Exit
	v       lkg.Verdict
	boot    int
	ids     int
	delay   time.Duration // before the next start
	storm   int           // how many of the next restarts come within seconds
	poison  outage        // what a selfish config left behind
	adopted bool          // the candidate is
	desired lkg.OutcomeKind
}

// A clock is the time of a history.
type clock struct {
	now      time.Duration // since the beginning, which no rule sees
	bootedAt time.Duration
	sync     time.Duration // when a time server answers
	offset   time.Duration // of the wall clock
}

// A life is one history while it is played. It keeps its own account, and knows nothing of how a rule counts.
type life struct {
	seed   uint64
	rnd    *rand.Rand
	rule   Rule
	limits lkg.Limits // with defaults filled in
	plot   plot
	tell   func(format string, args ...any)
	node
	clock
	account
}

func newLife(h Histories, r Rule, seed uint64) *life {
	rnd := rand.New(rand.NewPCG(seed, 0))
	limits := choice(rnd)
	if len(h.Limits) > 0 {
		limits = h.Limits[rnd.IntN(len(h.Limits))]
	}
	limits = lkg.Bounds{}.Clamp(limits)
	l := &life{
		seed: seed, rnd: rnd, rule: r, limits: limits, plot: newPlot(rnd, limits, h.Life), tell: func(string, ...any) {},
	}
	if h.Outages {
		l.plot.drawWorld(rnd, limits)
	}
	l.store, l.delay, l.tales = NewStore(), l.plot.delay, map[content]*tale{}
	return l
}

// wall is the clock that the node shows.
func (l *life) wall() time.Time {
	if l.now < l.sync {
		return time.Unix(0, 0).UTC().Add(l.now - l.bootedAt)
	}
	return time.Unix(1_900_000_000, 0).UTC().Add(l.now + l.offset)
}

func (l *life) play(ctx context.Context) (broken map[string]string, err error) {
	l.tell("the config %s; trial %v, healthy run %v, tolerated crashes %d",
		l.plot, l.limits.Trial, l.limits.MinHealthyRun, l.limits.CrashLoopThreshold)
	for _, o := range l.plot.outages {
		l.tell("from %v to %v: %s, seen: %v", o.from.Round(time.Second), o.to.Round(time.Second), o.kind, o.seen)
	}
	if err := l.beginLife(ctx); err != nil {
		return nil, err
	}
	for l.starts < mostStarts && !l.over {
		l.countStart()
		if err := l.start(ctx); err != nil {
			return nil, err
		}
		began := l.now
		if err := l.run(ctx); err != nil {
			return nil, err
		}
		if l.now-began > 10*time.Minute {
			l.delay = l.plot.delay
		}
		if !l.over {
			l.now += l.delay
		}
	}
	return finishLife(ctx, l)
}

// countStart notes one more start.
func (l *life) countStart() {
	if l.all++; l.all > mostEventful {
		l.plot.events, l.plot.noise = 0, 0
	}
	if isCalmNow(l) {
		l.starts++
	}
	l.over = l.over || l.kept != "" && l.starts > mostKept
}

// beginLife promotes the configs that were good before, and assigns the candidate if no time is left to the one before
// it. A run that has begun ends in a planned way.
func (l *life) beginLife(ctx context.Context) error {
	for _, r := range []lkg.Ref{older, before}[2-l.plot.proven:] {
		if err := l.assign(ctx, r); err != nil {
			return err
		}
		if err := l.decide(ctx); err != nil {
			return err
		}
		if err := l.tr.Promote(ctx); err != nil {
			return err
		}
	}
	if l.now >= l.plot.lead {
		return l.adopt(ctx)
	}
	if l.tr == nil {
		return nil
	}
	err := l.tr.PlanRestart(ctx, lkg.CausePlanned) // the first start of the history is no end that nothing explains
	l.tr, l.exit = nil, lkg.Exit{Kind: lkg.ExitClean}
	return err
}

// adopt assigns the candidate, once it can be had and the disk takes it.
func (l *life) adopt(ctx context.Context) error {
	o, gone := activeOutage(l, networkGone)
	if !gone {
		o, gone = activeOutage(l, diskFull)
	}
	if gone {
		l.plot.lead = o.to
		return nil
	}
	l.tell("the candidate is assigned")
	l.adopted = true
	return l.assign(ctx, candidate)
}

func (l *life) assign(ctx context.Context, r lkg.Ref) error {
	if err := l.open(ctx); err != nil {
		return err
	}
	if err := errors.Join(l.tr.Assign(ctx, r), l.tr.PlanRestart(ctx, lkg.CauseAdoption)); err != nil {
		return err
	}
	l.tr, l.exit = nil, lkg.Exit{Kind: lkg.ExitClean}
	return nil
}

// open makes the tracker of a process, if none runs, and lets the disk be full or not.
func (l *life) open(ctx context.Context) (err error) {
	l.store.StopAt(0, StopFull)
	if _, full := activeOutage(l, diskFull); full {
		l.store.StopAt(1, StopFull)
	}
	if l.tr != nil {
		return nil
	}
	l.tr, err = l.rule.Open(ctx, l.store, lkg.Options{
		Version: "v1", BootID: fmt.Sprintf("boot-%d", l.boot), Now: l.wall,
		ID: func() string { l.ids++; return fmt.Sprintf("id-%d", l.ids) },
	})
	return err
}

// acceptError gives back an error, unless the disk is full and that is the reason.
func (l *life) acceptError(err error) error {
	if _, full := activeOutage(l, diskFull); full && errors.Is(err, ErrStopped) {
		return nil
	}
	return err
}

// decide records a start and gives the verdict.
func (l *life) decide(ctx context.Context) error {
	if err := l.open(ctx); err != nil {
		return err
	}
	err := l.tr.Start(ctx, l.exit)
	countNewStart(l, err == nil)
	if err := l.acceptError(err); err != nil {
		return err
	}
	if err := l.lookAround(ctx); err != nil {
		return err
	}
	v, err := l.tr.Decide(ctx, l.limitsOf, checkNothing)
	l.v, l.healthy = v, 0
	return l.acceptError(err)
}

func (l *life) limitsOf(lkg.Ref) lkg.Limits { return l.limits }

func checkNothing(lkg.Ref) lkg.Check { return lkg.Check{Outcome: lkg.CheckOK} }

// lookAround records whether the desired config can be found.
func (l *life) lookAround(ctx context.Context) error {
	kind := lkg.DesiredCorrect
	if _, gone := activeOutage(l, networkGone); gone {
		kind = lkg.DesiredUnreachable
	}
	if kind == l.desired || !l.adopted {
		return nil
	}
	l.desired = kind
	return l.acceptError(l.tr.SetDesired(ctx, lkg.Outcome{Kind: kind}))
}

// start starts what the rule chooses.
func (l *life) start(ctx context.Context) error {
	if err := l.decide(ctx); err != nil {
		return err
	}
	noteListing(l)
	noteUsed(l)
	l.tell("uses %s as %s after %q: %s; counted %d, tolerated %d; the clock shows %s",
		nameOf(l.v.Use), l.v.Role, l.exit.Detail, l.v.Condition.Reason, l.v.Counted, l.v.Threshold,
		l.wall().Format(time.DateTime))
	return nil
}

// run lets what is used run until it ends by itself, or something from outside ends it, or the rule does.
func (l *life) run(ctx context.Context) error {
	own, hit, outside, adoption := l.lasts(), nextStrikeOf(l), nextEventOf(l), forever
	if !l.adopted {
		adoption = max(l.plot.lead-l.now, 0)
	}
	lasts := min(own, hit.after, outside, adoption)
	if ended, err := l.live(ctx, lasts); err != nil || ended {
		return err
	}
	switch lasts {
	case hit.after:
		noteOutage(l, hit.of)
		return nil
	case own:
		l.ends()
		return nil
	case adoption:
		return l.adopt(ctx)
	default:
		return l.event(ctx)
	}
}

// forever is a run that nothing ends.
const forever = time.Duration(math.MaxInt64)

// live reports on the run while it lasts. ended: the rule ended it, or the history is over.
func (l *life) live(ctx context.Context, lasts time.Duration) (ended bool, err error) {
	failed := true // the report before
	calm := time.Duration(0)
	for ran := time.Duration(0); ran < lasts; {
		if calm > patienceOf(l) && !failed || calm > 2*patienceOf(l) {
			l.over, l.alive = true, !failed
			return true, nil
		}
		step := min(l.plot.every, lasts-ran)
		if isCalmNow(l) {
			calm += step
		}
		ran, l.now = ran+step, l.now+step
		if step < l.plot.every {
			return false, nil // it ended before it was asked
		}
		ready := l.ready(ran, failed)
		if l.healthy += step; !ready {
			l.healthy = 0
		}
		failed = !ready
		if ended, err := l.report(ctx, step, ready); err != nil || ended {
			return true, err
		}
	}
	return false, nil
}

// ready is the answer of the required probe.
func (l *life) ready(ran time.Duration, failed bool) bool {
	if _, deaf := activeOutage(l, runtimeDeaf); deaf {
		return false
	}
	temper := l.plot.temper
	if !l.v.Use.Same(candidate) {
		temper = sound
	}
	switch {
	case temper == neverReady, ran <= l.plot.ramp:
		return false
	case temper == seldomReady:
		return l.healthy+l.plot.every < l.plot.life
	case l.plot.blips > 0 && !failed && chance(l.rnd, 0.05):
		l.plot.blips--
		return false
	default:
		return true
	}
}

// report tells the rule how the run is. ended: the rule asks for a restart.
func (l *life) report(ctx context.Context, elapsed time.Duration, ready bool) (ended bool, err error) {
	if err := l.open(ctx); err != nil {
		return false, err
	}
	if err := l.lookAround(ctx); err != nil {
		return false, err
	}
	h := lkg.Health{
		Elapsed: elapsed, Probes: []lkg.ProbeResult{{Name: "disk", Err: errNotReady}, {Name: "ready", Required: true}},
	}
	if !ready {
		h.Probes[1].Err = errNotReady
	}
	if o, deaf := activeOutage(l, runtimeDeaf); deaf && o.seen {
		h.Probes = append(h.Probes, lkg.ProbeResult{Name: "runtime", Below: true, Err: errNotReady})
	}
	p, err := l.tr.Healthy(ctx, h)
	if err := l.acceptError(err); err != nil {
		return false, err
	}
	switch p.Result {
	case "": // nothing is on trial
		return l.changeConfig(ctx)
	case "Wait":
		return false, nil
	case lkg.ResultPromoted:
		l.tell("promoted: %s", p.Why)
		return false, nil
	}
	l.tell("%s: %s", p.Result, p.Why)
	noteListing(l)
	if _, deaf := activeOutage(l, runtimeDeaf); deaf {
		noteDisturbed(l)
	} else if !ready {
		taleOf(l, l.v.Use).sick++
	}
	return true, l.restart(ctx)
}

// changeConfig restarts where a start would choose another config now. Only a rule that is a tracker can be asked.
func (l *life) changeConfig(ctx context.Context) (ended bool, err error) {
	tr, ok := l.tr.(*lkg.Tracker)
	if !ok || l.v.Role == lkg.RoleCurrent {
		return false, nil
	}
	next := lkg.Decide(lkg.Input{State: tr.State(), Recorded: true, Limits: l.limitsOf}, checkNothing)
	if next.Use.Same(l.v.Use) {
		return false, nil
	}
	l.tell("a start would use %s", nameOf(next.Use))
	return true, l.restart(ctx)
}

// restart ends the run because the rule wants another one.
func (l *life) restart(ctx context.Context) error {
	if err := l.open(ctx); err != nil {
		return err
	}
	err := l.tr.PlanRestart(ctx, lkg.CauseAdoption)
	l.tr, l.exit = nil, lkg.Exit{Kind: lkg.ExitClean}
	return l.acceptError(err)
}

var errNotReady = errors.New("not ready")
