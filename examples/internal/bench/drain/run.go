// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/examples/internal/bench/drain/stage"
)

// A drainFunc drains nodes and returns how many could not be drained, with one reason.
type drainFunc func(ctx context.Context, nodes []string) (failed int, why error)

// A side of a comparison. What prepare does happens before the drain is asked for: that a cache is filled, for example.
type side struct {
	name    string
	prepare func(ctx context.Context, config *rest.Config) (drain drainFunc, end func(), err error)
}

// A limit is that of a client; a negative qps means none.
type limit struct {
	qps   float32
	burst int
}

func unlimited() limit { return limit{qps: -1} }

// A result is what one run of one side came to.
type result struct {
	side   string
	wall   time.Duration // until the drain said that it was done
	failed int           // nodes
	why    error         // of one of them
	counts stage.Counts  // of the drain
	cache  stage.Counts  // before it
	served int           // requests by the API server's own count, in all
	lowest int           // the fewest healthy pods at any moment
	left   int           // pods still on the nodes when the drain said that it was done
	strays int           // pods asked to end on other nodes
}

// A trial is one run of one side.
type trial struct {
	shape   stage.Shape
	side    side
	limit   limit
	timeout time.Duration
	// during goes on beside the drain; it may be nil.
	during func(context.Context, scene) error
	// after looks at the play once the drain has ended; it may be nil.
	after func(context.Context, *stage.Play) error
}

// A scene is a drain that goes on.
type scene struct {
	play   *stage.Play
	client *stage.Client
	end    context.CancelFunc // ends the drain
	over   <-chan struct{}    // is closed when its time is over
	ended  <-chan struct{}    // is closed when it has ended
}

// try runs one trial on a play of its own.
func (b *bench) try(ctx context.Context, t trial) (r result, err error) {
	p, err := b.play(ctx, t.shape)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, p.Close(ctx)) }()
	client, err := b.stage.Client(t.side.name, t.limit.qps, t.limit.burst)
	if err != nil {
		return result{}, err
	}
	drain, end, err := t.side.prepare(ctx, client.Config)
	if err != nil {
		return result{}, fmt.Errorf("preparing %q: %w", t.side.name, err)
	}
	r = result{side: t.side.name, cache: client.Counter.Since(time.Time{})}
	p.Observer.Arm()
	err = r.drain(ctx, t, p, client, drain)
	end()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return result{}, err
	}
	if err := r.observe(p); err != nil {
		return result{}, err
	}
	if _, r.served, err = client.Agree(ctx); err != nil {
		return result{}, err
	}
	b.tell(r)
	if t.after != nil {
		err = t.after(ctx, p)
	}
	return r, err
}

// play sets a play up, and says how long that took.
func (b *bench) play(ctx context.Context, shape stage.Shape) (*stage.Play, error) {
	from := time.Now()
	p, err := b.stage.Play(ctx, shape)
	if err == nil {
		fmt.Fprintf(os.Stderr, "  %d nodes with %d pods each are there after %v\n", shape.Nodes, shape.PodsPerNode, time.Since(from).Round(100*time.Millisecond))
	}
	return p, err
}

// drain runs the drain, and what goes on beside it.
func (r *result) drain(ctx context.Context, t trial, p *stage.Play, c *stage.Client, drain drainFunc) error {
	limited, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	beside, ended := make(chan error, 1), make(chan struct{})
	from := time.Now()
	if t.during == nil {
		beside <- nil
	} else {
		go func() { beside <- t.during(ctx, scene{p, c, cancel, limited.Done(), ended}) }()
	}
	r.failed, r.why = drain(limited, p.Nodes)
	r.wall, r.counts = time.Since(from), c.Counter.Since(from)
	close(ended)
	return <-beside
}

// observe adds what the observer saw.
func (r *result) observe(p *stage.Play) error {
	nodes := p.On()
	return p.Observer.Look(func(seen stage.Seen) {
		r.lowest, r.left, r.strays = seen.Lowest, seen.On(nodes), seen.AskedOff(nodes)
	})
}

// tell keeps whoever watches informed.
func (b *bench) tell(r result) {
	fmt.Fprintf(os.Stderr, "  %s: %v, %d nodes failed, %d requests (%d evictions %v, %d reads, %d writes), %d before; the API server counts %d\n",
		r.side, r.wall.Round(time.Millisecond), r.failed, r.counts.Total, r.counts.Evictions, r.counts.Codes, r.counts.Reads, r.counts.Writes, r.cache.Total, r.served)
	if r.why != nil {
		why := r.why.Error()
		fmt.Fprintf(os.Stderr, "    %.300s\n", why)
	}
}

// compare runs each trial as often as asked for, in turns, every other time in the opposite order. The results are in the order of
// the trials.
func (b *bench) compare(ctx context.Context, trials ...trial) ([][]result, error) {
	results := make([][]result, len(trials))
	for n := range b.repeats {
		for i := range trials {
			if n%2 == 1 {
				i = len(trials) - 1 - i
			}
			r, err := b.try(ctx, trials[i])
			if err != nil {
				return nil, fmt.Errorf("repeat %d, %s: %w", n+1, trials[i].side.name, err)
			}
			results[i] = append(results[i], r)
		}
	}
	return results, nil
}
