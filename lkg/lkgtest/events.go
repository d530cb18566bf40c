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

// lasts draws how long a run lasts that nothing from outside ends.
func (p plot) lasts(rnd *rand.Rand) time.Duration {
	switch p.temper {
	case sound, neverReady, seldomReady:
		return forever
	default:
		return time.Duration(float64(p.life) * (0.2 + 0.8*rnd.Float64()))
	}
}

// badEnds is how systemd, or a supervisor, words the end of a process that ended badly.
var badEnds = [...]lkg.Exit{
	lkg.SystemdExit("exit-code", "exited", "255"), lkg.SystemdExit("signal", "killed", "SEGV"), lkg.SystemdExit("core-dump", "dumped", "ABRT"),
	lkg.SystemdExit("oom-kill", "killed", "KILL"), lkg.SystemdExit("timeout", "killed", "KILL"), {Kind: lkg.ExitCrash, Detail: "exit status 1"},
}

// ends ends the run by what the config does.
func (l *life) ends() {
	l.tell("the config %s", l.plot.temper)
	exit := badEnds[l.rnd.IntN(len(badEnds))]
	switch l.plot.temper {
	case returns:
		exit = lkg.SystemdExit("success", "exited", "0")
	case hangs:
		l.now += 30 * time.Second
		exit = lkg.SystemdExit("watchdog", "dumped", "ABRT")
	case panics:
		l.reboot("the machine went down", lkg.Exit{})
		return
	}
	l.stops(exit)
	if chance(l.rnd, l.plot.perCrash) {
		l.reboot("and the power failed", exit)
		return
	}
	l.seen++
	if l.plot.backOff {
		l.plot.delay = backoff.Next(l.plot.delay, 0, 5*time.Minute)
	}
}

// stops ends the process, and the tracker with it if that lives there. What a helper notes of the end is lost at
// times.
func (l *life) stops(exit lkg.Exit) {
	l.exit = exit
	if !l.plot.alone {
		return
	}
	l.tr = nil
	if l.plot.temper != sound && chance(l.rnd, 0.3) {
		l.exit = lkg.Exit{}
	}
}

// reboot brings the machine up again, with whatever a helper has noted of the end.
func (l *life) reboot(why string, exit lkg.Exit) {
	l.tell("boot: %s", why)
	l.tr, l.exit = nil, exit
	l.boot++
	l.now += spread(l.rnd, 5*time.Second, 3*time.Minute)
	l.booted = l.now
	if l.plot.noClock {
		l.sync = l.now + spread(l.rnd, time.Second, 5*time.Minute)
	}
}

// nextEvent draws when the next thing from outside happens.
func (l *life) nextEvent() time.Duration {
	if l.plot.jumps && chance(l.rnd, 0.3) {
		l.jump()
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

// jump sets the wall clock, in either direction.
func (l *life) jump() {
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
		if !l.below {
			l.seen++
		}
		l.tell("somebody kills the process")
		l.stops(lkg.SystemdExit("signal", "killed", "KILL"))
		return nil
	}
	l.plot.events--
	if chance(l.rnd, 0.1) {
		l.storm = l.rnd.IntN(15)
	}
	switch l.rnd.IntN(6) {
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
		l.reboot("kernel panic", lkg.Exit{})
	default:
		l.reboot("the power failed", badEnds[l.rnd.IntN(len(badEnds))])
	}
	return nil
}

// planned restarts the process as it announces itself.
func (l *life) planned(ctx context.Context, exit lkg.Exit) error {
	l.tell("the process plans its restart")
	err := l.tr.PlanRestart(ctx, lkg.CausePlanned)
	l.tr, l.exit = nil, exit
	return err
}
