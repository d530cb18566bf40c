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

// An outcome is what became of the config of a history.
type outcome int

const (
	undecided outcome = iota
	promoted
	rejected
)

// The bounds of one history. A sound config has seen all that comes from outside before the first is reached; the
// second is for bad
// ones alone.
const (
	mostStarts  = 60
	mostReports = 600
)

var (
	candidate = lkg.Ref{Namespace: "fleet", Name: "candidate", UID: "uid-candidate", Key: "kubelet", Digest: "sha256:candidate"}
	before    = lkg.Ref{Namespace: "fleet", Name: "before", UID: "uid-before", Key: "kubelet", Digest: "sha256:before"}
)

// A life is one history while it is played. It keeps its own account, and knows nothing of how a rule counts.
type life struct {
	seed   uint64
	rnd    *rand.Rand
	rule   Rule
	limits lkg.Limits // with defaults filled in
	plot   plot
	tell   func(format string, args ...any)

	store *Store
	tr    Tracker // of the running process, nil between two
	exit  lkg.Exit
	boot  int
	ids   int

	now    time.Duration // since the beginning, for nobody to see
	booted time.Duration
	sync   time.Duration // when a time server answers
	offset time.Duration // of the wall clock
	storm  int           // how many of the next restarts come within seconds

	lifeRun

	reports int
	outcome outcome
}

// A lifeRun is what is known of the runs of a life.
type lifeRun struct {
	below   bool // what runs is not the candidate, and lives
	restart bool // the rule asked for a restart
	seen    int  // ends of the candidate that nothing explains, since it was left
	kept    int  // of those, when it was used again all the same
}

func newLife(h Histories, r Rule, seed uint64) *life {
	rnd := rand.New(rand.NewPCG(seed, 0))
	limits := choice(rnd)
	if len(h.Limits) > 0 {
		limits = h.Limits[rnd.IntN(len(h.Limits))]
	}
	limits = lkg.Bounds{}.Clamp(limits)
	return &life{
		seed: seed, rnd: rnd, rule: r, limits: limits, plot: newPlot(rnd, limits, h.Life),
		tell: func(string, ...any) {}, store: NewStore(),
	}
}

// wall is the clock that the node shows.
func (l *life) wall() time.Time {
	if l.now < l.sync {
		return time.Unix(0, 0).UTC().Add(l.now - l.booted)
	}
	return time.Unix(1_900_000_000, 0).UTC().Add(l.now + l.offset)
}

func (l *life) play(ctx context.Context) error {
	l.tell("the config %s; trial %v, healthy run %v, tolerated crashes %d", l.plot, l.limits.Trial, l.limits.MinHealthyRun, l.limits.CrashLoopThreshold)
	if err := l.adopt(ctx); err != nil {
		return err
	}
	for range mostStarts {
		if err := l.start(ctx); err != nil || l.outcome != undecided {
			return errors.Join(err, l.settle(ctx))
		}
		if err := l.run(ctx); err != nil || l.outcome != undecided || l.enough() {
			return errors.Join(err, l.settle(ctx))
		}
		l.now += l.plot.delay
	}
	return l.settle(ctx)
}

// adopt assigns the candidate, after another config was promoted or not.
func (l *life) adopt(ctx context.Context) error {
	if l.plot.proven {
		if err := l.assign(ctx, before); err != nil {
			return err
		}
		if _, err := l.decide(ctx); err != nil {
			return err
		}
		if err := l.tr.Promote(ctx); err != nil {
			return err
		}
	}
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
	l.now += l.plot.delay
	return nil
}

// open makes the tracker of a process, if none runs.
func (l *life) open(ctx context.Context) (err error) {
	if l.tr != nil {
		return nil
	}
	l.tr, err = l.rule.Open(ctx, l.store, lkg.Options{
		Version: "v1", BootID: fmt.Sprintf("boot-%d", l.boot), Now: l.wall,
		ID: func() string { l.ids++; return fmt.Sprintf("id-%d", l.ids) },
	})
	return err
}

// decide records a start and gives the verdict.
func (l *life) decide(ctx context.Context) (lkg.Verdict, error) {
	if err := l.open(ctx); err != nil {
		return lkg.Verdict{}, err
	}
	if err := l.tr.Start(ctx, l.exit); err != nil {
		return lkg.Verdict{}, err
	}
	return l.tr.Decide(ctx, func(lkg.Ref) lkg.Limits { return l.limits },
		func(lkg.Ref) lkg.Check { return lkg.Check{Outcome: lkg.CheckOK} })
}

// start starts what the rule chooses.
func (l *life) start(ctx context.Context) error {
	v, err := l.decide(ctx)
	if err != nil {
		return err
	}
	l.below = !v.Use.Same(candidate)
	switch {
	case l.below:
		l.seen = 0 // it was left
		l.tell("uses the %s config: %s", v.Role, v.Condition.Reason)
		l.readList()
	case !v.OnTrial:
		l.outcome = promoted
		l.tell("is not on trial any more")
	default:
		l.tell("starts after %q, on trial, counted %d, tolerated %d; the clock shows %s", l.exit.Detail, v.Counted, v.Threshold, l.wall().Format(time.DateTime))
		if l.seen > l.limits.CrashLoopThreshold {
			l.kept = l.seen
		}
	}
	return nil
}

// readList sees whether the candidate is listed as bad.
func (l *life) readList() {
	s := l.tr.State()
	if s.BadEntry(candidate) != nil {
		l.outcome = rejected
		l.tell("is listed as bad")
	}
}

// run lets what was started run until it ends by itself, or something from outside ends it. What is below the
// candidate lives.
func (l *life) run(ctx context.Context) error {
	own, outside := forever, l.nextEvent()
	if !l.below {
		own = l.plot.lasts(l.rnd)
	}
	lasts := min(own, outside)
	l.restart = false
	if err := l.live(ctx, lasts); err != nil || l.outcome != undecided {
		return err
	}
	switch {
	case l.restart:
		return l.planned(ctx, lkg.Exit{Kind: lkg.ExitPlanned})
	case lasts == forever:
		return nil // it was waited for, in vain
	case own < outside:
		l.ends()
		return nil
	default:
		return l.event(ctx)
	}
}

// forever is a run that nothing ends.
const forever = time.Duration(math.MaxInt64)

// patience is how long a run that nothing ends is waited for.
func (l *life) patience() time.Duration {
	return 3*l.limits.Trial + 12*l.limits.MinHealthyRun + 10*time.Minute
}

// enough reports whether a bad config was watched for long enough.
func (l *life) enough() bool { return !l.plot.good() && l.reports > mostReports }

// live reports on the run while it lasts.
func (l *life) live(ctx context.Context, lasts time.Duration) error {
	failed := true // the report before
	streak := time.Duration(0)
	for ran := time.Duration(0); ran < min(lasts, l.patience()) && !l.enough(); {
		step := min(l.plot.every, lasts-ran)
		ran, l.now = ran+step, l.now+step
		if step < l.plot.every {
			return nil // it ended before it was asked
		}
		ready := l.ready(ran, streak, failed)
		if streak, failed = streak+step, !ready; failed {
			streak = 0
		}
		if err := l.report(ctx, step, ready); err != nil || l.outcome != undecided || l.restart {
			return err
		}
	}
	return nil
}

// ready is the answer of the required probe.
func (l *life) ready(ran, streak time.Duration, failed bool) bool {
	switch {
	case l.below:
		return true
	case l.plot.temper == neverReady, ran <= l.plot.ramp:
		return false
	case l.plot.temper == seldomReady:
		return streak+l.plot.every < l.plot.life
	case l.plot.blips > 0 && !failed && chance(l.rnd, 0.05):
		l.plot.blips--
		return false
	default:
		return true
	}
}

// report tells the rule how the run is.
func (l *life) report(ctx context.Context, elapsed time.Duration, ready bool) error {
	l.reports++
	h := lkg.Health{Elapsed: elapsed, Probes: []lkg.ProbeResult{{Name: "disk", Err: errNotReady}, {Name: "ready", Required: true}}}
	if !ready {
		h.Probes[1].Err = errNotReady
	}
	p, err := l.tr.Healthy(ctx, h)
	switch p.Result {
	case lkg.ResultPromoted:
		l.outcome = promoted
		l.tell("promoted: %s", p.Why)
	case lkg.ResultRejected:
		l.outcome = rejected
		l.tell("rejected: %s", p.Why)
	case lkg.ResultRestart:
		l.restart = true
		l.tell("asks for a restart: %s", p.Why)
	}
	return err
}

var errNotReady = errors.New("not ready")

// settle reads from the disk what became of the candidate.
func (l *life) settle(ctx context.Context) error {
	s, err := lkg.Load(ctx, l.store, "v1")
	if err != nil {
		return err
	}
	found := undecided
	if s.LastKnownGood.Same(candidate) {
		found = promoted
	}
	for _, b := range s.Bad {
		if b.Ref.Same(candidate) {
			found = rejected
		}
	}
	if found != l.outcome {
		return fmt.Errorf("the candidate's outcome is %d, and %d on record", l.outcome, found)
	}
	return nil
}
