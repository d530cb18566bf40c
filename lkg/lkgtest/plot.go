// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/belayproject/belay/lkg"
)

// A temper is how the candidate behaves.
type temper int

const (
	sound       temper = iota // good: it runs until something else ends it
	crashes                   // each run ends badly by itself
	returns                   // each run ends by itself, with status 0
	hangs                     // each run stops to report, and a watchdog ends it
	panics                    // each run takes the machine down
	neverReady                // a required probe never passes
	seldomReady               // a required probe never passes for as long as a healthy run has to last
	drags                     // each run takes the agent down with it
	breaksLater               // it is sound until something that it needs is gone: a file, a feature of the program
	selfish                   // each run ends badly, and for a while after it no config can run
)

func (t temper) String() string {
	return [...]string{
		"is sound", "crashes", "returns by itself", "hangs", "takes the machine down", "never gets ready",
		"is ready for moments", "takes the agent down", "breaks later", "crashes and spoils the node",
	}[t]
}

// A conduct is how the candidate of a history behaves.
type conduct struct {
	temper   temper
	life     time.Duration // the longest run that it has, once it is bad
	perCrash float64       // share of crashes behind which the power fails, so that nothing sees them
	breaks   time.Duration // when a config that breaks later does
	atOnce   bool          // a run that goes on ends as it breaks; else it breaks at the next start
	shared   bool          // the last known good config before it breaks with it
	lasting  time.Duration // how long a selfish config spoils the node after a run
}

// Habits are those of the node.
type habits struct {
	every   time.Duration // between two health reports
	ramp    time.Duration // how long the required probe fails in each run
	delay   time.Duration // before a restart
	backOff bool          // the delay doubles, up to five minutes
	noClock bool          // no clock runs while the machine is off: each boot begins in 1970, until a time server answers
	jumps   bool          // the wall clock jumps at times
	alone   bool          // the tracker lives in the process that crashes, so that the end is not always told
	blips   int           // reports in which the probe of a sound config fails, one at a time
}

// A plot is what a history draws at its beginning.
type plot struct {
	conduct
	habits
	weather
	proven int           // how many configs were promoted before: none, one, or two
	lead   time.Duration // when the candidate is adopted
}

func (p plot) isGood() bool { return p.temper == sound }

func (p plot) String() string {
	if p.isGood() {
		return p.temper.String()
	}
	return p.temper.String() + ", at most " + p.life.String() + " a run"
}

// choice are the limits of those who bring none of their own.
func choice(rnd *rand.Rand) lkg.Limits {
	trials := []time.Duration{0, 0, time.Minute, 2 * time.Minute, 5 * time.Minute, 20 * time.Minute, 40 * time.Minute}
	l := lkg.Limits{Trial: trials[rnd.IntN(len(trials))], CrashLoopThreshold: rnd.IntN(lkg.MaxCrashLoopThreshold + 1)}
	if chance(rnd, 0.25) {
		l.MinHealthyRun = l.Trial / 2
	}
	if chance(rnd, 0.5) {
		l.ProbeDeadline = 2 * time.Minute
	}
	return l
}

// newPlot draws a plot for limits whose defaults are filled in.
func newPlot(rnd *rand.Rand, l lkg.Limits, life time.Duration) plot {
	every := []time.Duration{15 * time.Second, 30 * time.Second, time.Minute}[rnd.IntN(3)]
	p := plot{habits: habits{
		every: min(every, l.ProbeDeadline/4),
		delay: spread(rnd, 100*time.Millisecond, 30*time.Second), backOff: chance(rnd, 0.3),
		noClock: chance(rnd, 0.2), jumps: chance(rnd, 0.3), alone: chance(rnd, 0.4),
	}}
	p.proven = rnd.IntN(3)
	p.boots = rnd.IntN(tolerated + 1)
	if chance(rnd, 0.7) {
		p.events, p.gap = rnd.IntN(30), spread(rnd, 5*time.Second, l.Trial)
	}
	if chance(rnd, 0.5) {
		p.ramp = spread(rnd, time.Second, l.ProbeDeadline/4)
	}
	if chance(rnd, 0.5) {
		p.noise, p.blips = rnd.IntN(l.CrashLoopThreshold+1), rnd.IntN(4)
		return p
	}
	p.temper = []temper{crashes, returns, hangs, panics, neverReady, seldomReady}[rnd.IntN(6)]
	if chance(rnd, 0.3) {
		p.perCrash = 0.2
	}
	p.life = p.longest(rnd, l, life)
	return p
}

// longest draws how long a bad config lives at most in one run.
func (p *plot) longest(rnd *rand.Rand, l lkg.Limits, life time.Duration) time.Duration {
	most := l.MinHealthyRun
	if p.events == 0 && p.perCrash == 0 && p.temper != panics && p.temper != seldomReady {
		most = l.Trial
	}
	if life > 0 {
		most = life
	}
	return spread(rnd, time.Second, most)
}

// spread draws a duration between two, with the same chance for each order of magnitude. It never is most itself.
func spread(rnd *rand.Rand, least, most time.Duration) time.Duration {
	if most <= least {
		return most - 1
	}
	return min(time.Duration(float64(least)*math.Pow(float64(most)/float64(least), rnd.Float64())), most-1)
}

func chance(rnd *rand.Rand, p float64) bool { return rnd.Float64() < p }
