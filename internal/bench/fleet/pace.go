// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/bench/runner"
)

// piece is what is read again and again to see how fast the machine is: text, as an API server reads, too little of it to leave a processor's own cache.
var piece = []byte("[" + strings.Repeat(`{"name":"some text \u0020 here","of":[1,2,3.5e3,true,null],"and":{"in":{"it":"more"}}},`, 100) + "1]")

// often is how long the machine goes on between two looks at its pace, which then take less than a hundredth of one processor.
const often = 20 * time.Millisecond

// A pace is how fast the machine is from its beginning to its end: the processor time that a fixed piece of work takes.
//
// It differs within seconds where processors of this machine share a core, a clock or memory with those of others: by two to one on a virtual machine where
// nothing else ran. What the processors do then takes as much longer, by the clock as well as by processor time. The piece is worked on twice at each look,
// and the second time counts: so it does not matter what others have put into the cache, which depends on who they are.
type pace struct {
	stop chan struct{}
	took chan time.Duration
}

func newPace() *pace {
	p := &pace{make(chan struct{}), make(chan time.Duration, 1)}
	go p.run()
	return p
}

// end is the processor time of one piece, the mean of all looks.
func (p *pace) end() time.Duration {
	close(p.stop)
	return <-p.took
}

func (p *pace) run() {
	runtime.LockOSThread() // processor time is that of the thread
	defer runtime.UnlockOSThread()
	look := time.NewTicker(often)
	defer look.Stop()
	var sum time.Duration
	for n := time.Duration(1); ; n++ {
		json.Valid(piece)
		from := threadTime()
		json.Valid(piece)
		sum += threadTime() - from
		select {
		case <-look.C:
		case <-p.stop:
			p.took <- sum / n
			return
		}
	}
}

// threadTime is the processor time of this thread so far. Without that clock it is the wall's.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}

// paces are those of all bursts.
func paces(turns []*turn) runner.Figures[time.Duration] {
	var all runner.Figures[time.Duration]
	for _, t := range turns {
		all = append(all, runner.Each(t.bursts, func(b burst) time.Duration { return b.pace })...)
	}
	return all
}

// evened are the bursts as they would have been on a machine that is as fast all the time as it was in the middle of all of these.
func evened(turns []*turn) (even []*turn, note string) {
	all := paces(turns)
	for _, t := range turns {
		e := &turn{name: t.name}
		for _, b := range t.bursts {
			e.bursts = append(e.bursts, b.at(all.Median()))
		}
		even = append(even, e)
	}
	return even, fmt.Sprintf("at one pace of the machine, at which the same piece of work took %s of a processor in each burst", all)
}

// at is the burst at another pace.
func (b burst) at(other time.Duration) burst {
	if b.pace <= 0 || other <= 0 {
		return b
	}
	by := float64(other) / float64(b.pace)
	scaled := func(all []time.Duration) (out []time.Duration) {
		for _, d := range all {
			out = append(out, time.Duration(by*float64(d)))
		}
		return out
	}
	b.fleet, b.own, b.given = scaled(b.fleet), scaled(b.own), time.Duration(by*float64(b.given))
	used := work{}
	for name, seconds := range b.work {
		used[name] = by * seconds
	}
	b.work, b.pace = used, other
	return b
}
