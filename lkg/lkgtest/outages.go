// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest

import (
	"math/rand/v2"
	"time"

	"github.com/belayproject/belay/lkg"
)

// A trouble is what fails below every config of a node.
type trouble int

const (
	runtimeGone trouble = iota // what starts, dies within seconds; what runs, at times
	runtimeDeaf                // what starts, lives, and is not ready
	diskFull                   // as runtimeGone, and the store refuses every write
	binaryGone                 // the program cannot be executed
	networkGone                // the desired config is not known
	powerFails                 // the machine reboots again and again
	agentDies                  // the agent dies again and again, and the process with it
)

func (t trouble) String() string {
	return [...]string{
		"runtime is gone", "runtime does not answer", "disk is full", "program cannot be executed", "network is gone",
		"power fails", "agent dies",
	}[t]
}

// An outage is a trouble that lasts from one moment to another, the second not included.
type outage struct {
	kind     trouble
	from, to time.Duration
	seen     bool // a witness sees it
	varies   bool // each config dies of it in its own way
	kills    bool // what runs when it begins dies
}

func (o outage) isOn(now time.Duration) bool { return o.from <= now && now < o.to }

// Weather is what comes from outside.
type weather struct {
	world   bool          // what is around the configs breaks as well
	events  int           // how many restarts
	gap     time.Duration // the mean time between them
	noise   int           // how many ends that nothing explains, within what is tolerated
	boots   int           // how many of the restarts may be reboots that were not planned
	agents  int           // how many of the restarts may be deaths of the agent
	asked   bool          // the witnesses are asked at each end
	outages []outage      // of which at most one is not seen
}

// drawWorld adds to a plot what can break around and below the configs.
func (p *plot) drawWorld(rnd *rand.Rand, l lkg.Limits) {
	p.world, p.asked = true, chance(rnd, 0.7)
	p.events, p.boots, p.agents = min(p.events, 12), rnd.IntN(tolerated+1), rnd.IntN(tolerated+1)
	if p.backOff = p.backOff || chance(rnd, 0.7); !p.backOff {
		p.delay = max(p.delay, 5*time.Second)
	}
	p.proven = 1 + rnd.IntN(2)
	if chance(rnd, 0.2) {
		p.proven = 0
	}
	p.lead = spread(rnd, time.Second, time.Hour)
	if !p.isGood() && chance(rnd, 0.6) {
		p.temper = []temper{drags, breaksLater, breaksLater, breaksLater, selfish}[rnd.IntN(5)]
		p.life = spread(rnd, time.Second, l.MinHealthyRun)
	}
	switch p.temper {
	case breaksLater:
		p.breaks, p.atOnce, p.shared = p.drawMoment(rnd, l), chance(rnd, 0.5), chance(rnd, 0.3)
	case selfish:
		p.lasting, p.backOff = spread(rnd, 5*time.Second, 4*time.Minute), true
	}
	if chance(rnd, 0.85) {
		p.outages = append(p.outages, p.drawUnseen(rnd, l))
	}
	for range rnd.IntN(3) {
		o := p.drawOutage(rnd, l, []trouble{runtimeGone, runtimeDeaf, diskFull, binaryGone, networkGone})
		o.seen = true
		p.outages = append(p.outages, o)
	}
}

// drawUnseen draws an outage that no witness explains.
func (p *plot) drawUnseen(rnd *rand.Rand, l lkg.Limits) outage {
	return p.drawOutage(rnd, l, []trouble{runtimeGone, runtimeGone, runtimeDeaf, diskFull, powerFails, agentDies})
}

func (p *plot) drawOutage(rnd *rand.Rand, l lkg.Limits, kinds []trouble) outage {
	o := outage{
		kind: kinds[rnd.IntN(len(kinds))], from: p.drawMoment(rnd, l), varies: chance(rnd, 0.3), kills: chance(rnd, 0.5),
	}
	most := time.Hour
	if !p.backOff { // a restart each few seconds for an hour tells no more than for minutes
		most = min(most, 40*(p.delay+5*time.Second))
	}
	o.to = o.from + spread(rnd, time.Second, most)
	return o
}

// drawMoment draws when something breaks: before the adoption, in the trial, or after it.
func (p *plot) drawMoment(rnd *rand.Rand, l lkg.Limits) time.Duration {
	switch rnd.IntN(4) {
	case 0:
		return max(p.lead-spread(rnd, time.Second, p.lead+2*time.Second), time.Second)
	case 1:
		return p.lead + spread(rnd, time.Second, 30*time.Second)
	case 2:
		return p.lead + spread(rnd, time.Second, l.Trial)
	default:
		return p.lead + l.Trial + spread(rnd, time.Minute, 4*l.Trial+time.Hour)
	}
}

// tolerated is how many boots, or deaths of the agent, a config has to survive without a doubt about it.
const tolerated = 3

// A strike is when and how an outage ends a run.
type strike struct {
	after time.Duration
	of    outage
}

// nextStrikeOf draws which outage ends the run that begins now, if any does.
func nextStrikeOf(l *life) strike {
	next := strike{after: forever}
	for _, o := range append(l.plot.outages[:len(l.plot.outages):len(l.plot.outages)], l.poison) {
		if after := struckAfter(l, o); after < next.after {
			next = strike{after, o}
		}
	}
	return next
}

// struckAfter draws how long a run that begins now lasts until an outage ends it.
func struckAfter(l *life, o outage) time.Duration {
	if o.to <= l.now {
		return forever
	}
	wait := max(o.from-l.now, 0)
	after := forever
	switch o.kind {
	case runtimeGone, diskFull:
		if wait == 0 || o.kills {
			after = wait + spread(l.rnd, 100*time.Millisecond, 10*time.Second)
		}
	case binaryGone:
		if wait == 0 {
			after = time.Millisecond
		}
	case powerFails:
		after = wait + spread(l.rnd, time.Second, 2*time.Minute)
	case agentDies:
		after = wait + spread(l.rnd, time.Second, time.Minute)
	}
	if wait > 0 && after != forever && l.now+after >= o.to {
		return forever
	}
	return after
}

// activeOutage reports whether a trouble of this kind is there now.
func activeOutage(l *life, kind trouble) (o outage, yes bool) {
	for _, o := range l.plot.outages {
		if o.kind == kind && o.isOn(l.now) {
			return o, true
		}
	}
	return outage{}, false
}

// isSpoiled reports whether a witness sees now that something below is gone.
func isSpoiled(l *life) bool {
	for _, o := range l.plot.outages {
		if o.seen && o.isOn(l.now) && (o.kind == runtimeGone || o.kind == runtimeDeaf || o.kind == diskFull) {
			return true
		}
	}
	return false
}

// noteOutage ends the run by an outage.
func noteOutage(l *life, o outage) {
	l.tell("the %s (until %v, seen: %v)", o.kind, o.to.Round(time.Second), o.seen)
	noteDisturbed(l)
	signature := o.kind.String()
	if o.varies {
		signature += " under " + l.v.Use.Name
	}
	e := lkg.Exit{Kind: lkg.ExitCrash, Detail: o.kind.String(), Signature: signature, Witnessed: l.plot.asked}
	switch o.kind {
	case binaryGone:
		e.Fault, e.Witnessed = lkg.FaultNotExecuted, false
	case powerFails:
		l.reboot("the power failed", lkg.Exit{})
		return
	case agentDies:
		endRun(l, "the agent dies")
		return
	default:
		if o.seen {
			e.Fault, e.Witnessed = lkg.FaultEnvironment, false
		}
	}
	l.stops(e)
}

// calmTime is when nothing breaks any more, but for what the config itself does.
func (p plot) calmTime() time.Duration {
	calm := max(p.lead, p.breaks)
	for _, o := range p.outages {
		calm = max(calm, o.to)
	}
	return calm
}
