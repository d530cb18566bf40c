// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/lkg"
)

// lasts draws how long a run of the config in use lasts that nothing from outside ends.
func (l *life) lasts() time.Duration {
	p := &l.plot
	breaks := p.temper == breaksLater && (l.v.Use.Same(candidate) || p.shared && l.v.Use.Same(before))
	switch {
	case breaks && l.now < p.breaks && p.atOnce:
		return p.breaks - l.now
	case breaks && l.now >= p.breaks:
		return p.drawRun(l.rnd)
	case breaks, !l.v.Use.Same(candidate):
		return forever
	}
	switch p.temper {
	case sound, neverReady, seldomReady:
		return forever
	default:
		return p.drawRun(l.rnd)
	}
}

func (p *plot) drawRun(rnd *rand.Rand) time.Duration {
	return time.Duration(float64(p.life) * (0.2 + 0.8*rnd.Float64()))
}

// badEnds is how systemd, or a supervisor, words the end of a process that ended badly.
var badEnds = [...]lkg.Exit{
	lkg.SystemdExit("exit-code", "exited", "255"), lkg.SystemdExit("signal", "killed", "SEGV"),
	lkg.SystemdExit("core-dump", "dumped", "ABRT"), lkg.SystemdExit("oom-kill", "killed", "KILL"),
	lkg.SystemdExit("timeout", "killed", "KILL"), {Kind: lkg.ExitCrash, Detail: "exit status 1"},
}

// ends ends the run by what the config does.
func (l *life) ends() {
	l.tell("the config %s", l.plot.temper)
	e := badEnds[l.rnd.IntN(len(badEnds))]
	switch l.plot.temper {
	case returns:
		e = lkg.SystemdExit("success", "exited", "0")
	case hangs:
		l.now += 30 * time.Second
		e = lkg.SystemdExit("watchdog", "dumped", "ABRT")
	case panics:
		countEnd(l, &taleOf(l, l.v.Use).boots)
		l.reboot("the machine went down", lkg.Exit{})
		return
	case drags:
		countEnd(l, &taleOf(l, l.v.Use).boots)
		endRun(l, "the agent is killed for what the process does")
		return
	case selfish:
		l.poison = outage{kind: runtimeGone, from: l.now, to: l.now + l.plot.lasting}
	}
	e.Signature = "own end of " + l.v.Use.Name
	if l.plot.shared {
		e.Signature = "a file is missing"
	}
	e.Witnessed = l.plot.asked
	if isSpoiled(l) {
		e.Fault, e.Witnessed = lkg.FaultEnvironment, false // nothing tells that it would have ended anyway
		l.stops(e)
		return
	}
	l.stops(e)
	if chance(l.rnd, l.plot.perCrash) {
		countEnd(l, &taleOf(l, l.v.Use).boots)
		l.reboot("and the power failed", e)
		return
	}
	countEnd(l, &taleOf(l, l.v.Use).deaths)
}

// stops ends the process, and the tracker with it if that lives there. What a helper notes of the end is lost at times.
func (l *life) stops(e lkg.Exit) {
	l.exit = e
	if e.Kind != lkg.ExitPlanned && l.plot.backOff {
		l.delay = backoff.Next(l.delay, l.plot.delay, 5*time.Minute)
	}
	if !l.plot.alone {
		return
	}
	l.tr = nil
	if l.plot.temper != sound && e.Fault == "" && chance(l.rnd, 0.3) {
		l.exit = lkg.Exit{}
	}
}

// endRun ends the agent, and the process with it.
func endRun(l *life, why string) {
	l.tell("%s", why)
	e := lkg.SystemdExit("signal", "killed", "KILL")
	e.Fault = lkg.FaultSupervisor
	l.stops(e)
	l.tr = nil
}

// reboot brings the machine up again, with whatever a helper has noted of the end.
func (l *life) reboot(why string, e lkg.Exit) {
	l.tell("boot: %s", why)
	l.tr, l.exit = nil, e
	l.boot++
	l.now += spread(l.rnd, 5*time.Second, 3*time.Minute)
	l.bootedAt = l.now
	if l.plot.noClock {
		l.sync = l.now + spread(l.rnd, time.Second, 5*time.Minute)
	}
}

// nextEventOf draws when the next thing from outside happens.
func nextEventOf(l *life) time.Duration {
	if l.plot.jumps && chance(l.rnd, 0.3) {
		jumpToEvent(l)
	}
	switch {
	case l.plot.events+l.plot.noise == 0:
		return forever
	case l.plot.events == 0 && l.plot.gap == 0:
		return spread(l.rnd, time.Second, l.limits.Trial)
	case l.storm > 0:
		l.storm--
		return spread(l.rnd, time.Millisecond, 20*time.Second)
	default:
		return time.Duration(l.rnd.ExpFloat64() * float64(l.plot.gap))
	}
}

// jumpToEvent sets the wall clock, in either direction.
func jumpToEvent(l *life) {
	by := spread(l.rnd, time.Second, 400*24*time.Hour)
	if chance(l.rnd, 0.5) {
		by = -by
	}
	l.offset += by
	l.tell("the clock jumps by %v", by.Round(time.Second))
}

// event lets something happen from outside.
func (l *life) event(ctx context.Context) error {
	if l.rnd.IntN(l.plot.events+l.plot.noise) < l.plot.noise {
		l.plot.noise--
		l.tell("the process is killed, and nothing says why")
		noteDisturbed(l)
		e := lkg.SystemdExit("signal", "killed", "KILL")
		e.Signature, e.Witnessed = "killed", l.plot.asked
		l.stops(e)
		return nil
	}
	l.plot.events--
	if chance(l.rnd, 0.1) {
		l.storm = l.rnd.IntN(15)
	}
	what := l.rnd.IntN(6)
	if l.plot.agents > 0 && chance(l.rnd, 0.3) {
		l.plot.agents--
		noteDisturbed(l)
		endRun(l, "the agent dies")
		return nil
	}
	if what > 3 {
		if l.plot.boots == 0 {
			what = 0
		}
		l.plot.boots = max(l.plot.boots-1, 0)
	}
	switch what {
	case 0:
		return l.planned(ctx, lkg.SystemdExit("success", "exited", "0"))
	case 1:
		return l.planned(ctx, lkg.SystemdExit("timeout", "killed", "KILL"))
	case 2:
		l.tell("an administrator restarts the unit")
		l.stops(lkg.SystemdExit("success", "killed", "TERM"))
	case 3:
		if err := l.planned(ctx, lkg.Exit{Kind: lkg.ExitClean}); err != nil {
			return err
		}
		l.reboot("an administrator reboots", l.exit)
	case 4:
		noteDisturbed(l)
		l.reboot("kernel panic", lkg.Exit{})
	default:
		noteDisturbed(l)
		l.reboot("the power failed", badEnds[l.rnd.IntN(len(badEnds))])
	}
	return nil
}

// planned restarts the process as it announces itself.
func (l *life) planned(ctx context.Context, exit lkg.Exit) error {
	l.tell("the process plans its restart")
	if err := l.open(ctx); err != nil {
		return err
	}
	err := l.tr.PlanRestart(ctx, lkg.CausePlanned)
	l.tr, l.exit = nil, exit
	return l.acceptError(err)
}
