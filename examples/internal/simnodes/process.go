// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package simnodes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/lkg"
)

// pause is the time between the end of a process and its next start.
const pause = 300 * time.Millisecond

// A process stands in for the kubelet of a node, under its supervisor. It is a configsync.Restarter and a
// configsync.Probe.
type process struct {
	breaks  func(*kubelet.Config) string // why a config ends it at once; empty where it does not
	restart chan lkg.Ref                 // to which config; has a place for one
	chosen  chan struct{}                // closed once the first start has chosen a config

	mu      sync.Mutex
	running bool
	uses    lkg.Ref
	starts  []lkg.Ref
	crashed map[string]int // how often, by digest
}

func newProcess(breaks func(*kubelet.Config) string) *process {
	return &process{breaks: breaks, restart: make(chan lkg.Ref, 1), chosen: make(chan struct{}), crashed: map[string]int{}}
}

// Name implements configsync.Probe.
func (*process) Name() string { return "process" }

// Check implements configsync.Probe.
func (p *process) Check(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running {
		return errors.New("it is not running")
	}
	return nil
}

// Restart implements configsync.Restarter. The last one that is asked for counts.
func (p *process) Restart(_ context.Context, c configsync.Change) error {
	for {
		select {
		case p.restart <- c.To:
			return nil
		case <-p.restart:
		}
	}
}

// run starts the process again and again, each time with what the syncer chooses from disk, until ctx ends.
func (p *process) run(ctx context.Context, s *configsync.Syncer[*kubelet.Config]) error {
	var exit lkg.Exit
	for first := true; ctx.Err() == nil; first = false {
		active, err := s.Bootstrap(ctx, exit)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("starting the process: %w", err)
		}
		if first {
			close(p.chosen)
		}
		exit = p.live(ctx, active)
		p.note(func() { p.running = false })
		backoff.Sleep(ctx, pause)
	}
	return nil
}

// live is one life of the process.
func (p *process) live(ctx context.Context, a configsync.Active[*kubelet.Config]) lkg.Exit {
	why := p.breaks(a.Config)
	p.note(func() {
		p.starts = append(p.starts, a.Ref)
		if p.uses, p.running = a.Ref, why == ""; why != "" {
			p.crashed[a.Ref.Digest]++
		}
	})
	if why != "" {
		return lkg.Exit{Kind: lkg.ExitCrash, Detail: "exit status 1"}
	}
	for {
		select {
		case <-ctx.Done():
			return lkg.Exit{Kind: lkg.ExitClean}
		case to := <-p.restart:
			if !to.Same(a.Ref) { // otherwise it was asked for while this very start was under way
				return lkg.Exit{Kind: lkg.ExitPlanned}
			}
		}
	}
}

func (p *process) note(what func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what()
}
