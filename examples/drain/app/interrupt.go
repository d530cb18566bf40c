// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/belayproject/belay/drain"
)

// watchSignals returns a context that the first Ctrl-C ends. The second Ctrl-C ends the process. end takes the signals off again.
func (a *app) watchSignals(ctx context.Context, tell *teller) (running context.Context, end func()) {
	running, stop := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case <-done:
				return
			case <-signals:
			}
			if running.Err() != nil {
				tell.screen.Draw()
				fmt.Fprint(a.errs, tell.leftBehind())
				a.exit(exitError)
			}
			tell.say("Interrupted: no further eviction starts, and what was changed is given back. Once more ends at once.")
			stop()
		}
	}()
	return running, func() {
		signal.Stop(signals)
		close(done)
		stop()
	}
}

// leftBehind says which nodes stay as they are, and how they are given back.
func (t *teller) leftBehind() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cache == nil {
		return "drain: interrupted before anything was done\n"
	}
	held := heldBy(t.cache, t.nodes, t.holder)
	if len(held) == 0 {
		return fmt.Sprintf("drain: interrupted twice; none of the nodes is held by %s\n", t.holder)
	}
	return fmt.Sprintf("drain: interrupted twice; left behind, cordoned for %s: %s\nto give back: %s\n", t.holder, strings.Join(held, ", "),
		releaseLine(held, t.holder))
}

// heldBy are those of the nodes that carry the holder's mark.
func heldBy(cache drain.Cache, nodes []string, holder string) []string {
	var held []string
	for _, name := range nodes {
		if slices.Contains(holders(cache.Node(name)), holder) {
			held = append(held, name)
		}
	}
	return held
}

// releaseLine is the command line that gives nodes back.
func releaseLine(nodes []string, holder string) string {
	return fmt.Sprintf("%s release %s --holder=%s", programName(os.Args[0]), strings.Join(nodes, " "), holder)
}
