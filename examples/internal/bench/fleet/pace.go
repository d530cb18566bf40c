// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/examples/internal/bench/runner"
)

const (
	// often is how long the machine goes on between two looks at its pace, which then take some two hundredths of one processor.
	often = 20 * time.Millisecond
	// reads is how often the text is read at a look.
	reads = 8
	// paceKeeper is the name of the process that looks.
	paceKeeper = "pace"
)

// A pace is how fast the machine is from its beginning to its end: the processor time that a fixed piece of work takes.
//
// It differs within seconds where processors of this machine share a core, a clock or memory with those of others: by two to one on a virtual machine where
// nothing else ran. What the processors do then takes as much longer, by the clock as well as by processor time.
//
// A process of its own does the piece, so that it knows nothing of what the sides do with their memory. It does it twice at each look, and the second time counts:
// what others have put into the cache does not. What is left is how fast the core is, which both sides keep as busy.
type pace struct {
	process *exec.Cmd
	stop    io.Closer
	says    strings.Builder
}

// newPace begins to look.
func newPace(ctx context.Context) (*pace, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &pace{process: exec.CommandContext(ctx, self, "-child="+paceKeeper)}
	p.process.Stdout, p.process.Stderr = &p.says, os.Stderr
	if p.stop, err = p.process.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.process.Start()
}

// end is the processor time of one piece, the mean of all looks.
func (p *pace) end() (time.Duration, error) {
	_ = p.stop.Close() // where that fails, the process has ended, and says why
	if err := p.process.Wait(); err != nil {
		return 0, fmt.Errorf("looking at the pace of the machine: %w", err)
	}
	took, err := time.ParseDuration(strings.TrimSpace(p.says.String()))
	if err == nil && took <= 0 {
		err = fmt.Errorf("a piece of work took %s of a processor", took)
	}
	return took, err
}

// keepPace is the process: it looks until its input ends, and says what it saw.
func keepPace() error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	runtime.LockOSThread() // processor time is that of the thread
	defer runtime.UnlockOSThread()
	look := time.NewTicker(often)
	defer look.Stop()
	took, err := looks(threadTime, look.C, ended)
	if err == nil {
		_, err = fmt.Println(took)
	}
	return err
}

// looks does the piece at once and at each tick, until the end, and returns what it took in the mean.
func looks(now func() (time.Duration, error), tick <-chan time.Time, ended <-chan struct{}) (time.Duration, error) {
	text := piece()
	var sum time.Duration
	for n := time.Duration(1); ; n++ {
		work := read(text)
		from, err := now()
		if err != nil {
			return 0, err
		}
		again := read(text)
		to, err := now()
		if err != nil {
			return 0, err
		}
		if again != work {
			return 0, fmt.Errorf("the same work came to %d and to %d", work, again)
		}
		sum += to - from
		select {
		case <-tick:
		case <-ended:
			return sum / n, nil
		}
	}
}

// piece is the text that is read: too little of it to leave a processor's own cache.
func piece() string {
	return strings.Repeat(`{"name":"some text \u0020 here","of":[1,2,3.5e3,true,null],"and":{"in":{"it":"more"}}},`, 100)
}

// read does what decoding does, byte for byte, and makes nothing: it tells strings, numbers and brackets apart, and sums them up.
func read(text string) (sum uint32) {
	within, depth := false, uint32(0)
	for range reads {
		for i := range len(text) {
			switch c := text[i]; {
			case c == '"':
				within = !within
			case within:
				sum = (sum ^ uint32(c)) * 16777619
			case c == '{' || c == '[':
				depth++
			case c == '}' || c == ']':
				depth--
			case c >= '0' && c <= '9':
				sum = sum*10 + uint32(c-'0') + depth
			default:
				sum += uint32(c)
			}
		}
	}
	return sum
}

// threadTime is the processor time of this thread so far.
func threadTime() (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano()), err
}

// paces are those of bursts.
func paces(bursts []burst) runner.Figures[time.Duration] {
	return runner.Each(bursts, func(b burst) time.Duration { return b.pace })
}

// evened are the bursts as they would have been on a machine that is as fast all the time as it was in the middle of all of these.
func evened(turns []*turn) (even []*turn) {
	var all runner.Figures[time.Duration]
	for _, t := range turns {
		all = append(all, paces(t.bursts)...)
	}
	for _, t := range turns {
		e := &turn{name: t.name}
		for _, b := range t.bursts {
			e.bursts = append(e.bursts, b.at(all.Median()))
		}
		even = append(even, e)
	}
	return even
}

// at is the burst at another pace.
func (b burst) at(other time.Duration) burst {
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
