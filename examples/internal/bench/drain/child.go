// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/belayproject/belay/examples/internal/bench/drain/stage"
)

const (
	lifetime = time.Second
	// lives is after how many a drain counts as one that never finishes. A kill can cut off evictions for which the server has charged
	// the budget already: if they are as many as it allows, nobody can evict anything for the next 2 minutes.
	lives = 200
)

// sides are those that a process of its own can take.
func sides() map[string]side {
	return map[string]side{"ours": ours(settled(0)), "peer": peer(kubectlRetry)}
}

// drainAsChild drains in this process: the arguments are a kubeconfig and the nodes.
func drainAsChild(ctx context.Context, name string, args []string) error {
	s, ok := sides()[name]
	if !ok || len(args) < 2 {
		return fmt.Errorf("-child=%s: want ours or peer, a kubeconfig and nodes", name)
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1
	drain, end, err := s.prepare(ctx, config)
	if err != nil {
		return err
	}
	defer end()
	if failed, why := drain(ctx, args[1:]); failed > 0 {
		return fmt.Errorf("%d nodes are not drained: %w", failed, why)
	}
	return nil
}

// A struggle is a drain whose process is killed again and again.
type struggle struct {
	result
	lives     int
	finished  bool
	evictions int
}

// killed is S6.
func killed(ctx context.Context, b *bench) error {
	shape := stage.Shape{Nodes: 2, PodsPerNode: 20, Ready: ready, End: time.Second, MaxUnavailable: new(intstr.FromInt32(unavailable))}
	var mine, theirs []struggle
	for range b.repeats {
		for name, all := range map[string]*[]struggle{"ours": &mine, "peer": &theirs} {
			s, err := b.struggle(ctx, shape, name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			*all = append(*all, s)
		}
	}
	of := func(all []struggle, f func(struggle) int) (out figures[int]) {
		for _, s := range all {
			out = append(out, f(s))
		}
		return out
	}
	unfinished := func(s struggle) int {
		if s.finished && s.left == 0 {
			return 0
		}
		return 1
	}
	strays := func(s struggle) int { return s.strays }
	count := func(s struggle) int { return s.lives }
	asks := func(s struggle) int { return s.evictions }
	lost, stray := of(mine, unfinished), of(mine, strays)
	b.print(line{
		name: "S6.unfinished", ours: lost.String(), peer: of(theirs, unfinished).String(), bar: "0", good: lost.most() == 0 && stray.most() == 0,
		more: fmt.Sprintf("killed %v after each start, %dx%d pods under a budget of %d; lives %s, peer %s; evictions asked for %s, peer %s; pods evicted elsewhere %s, peer %s",
			lifetime, shape.Nodes, shape.PodsPerNode, unavailable, of(mine, count), of(theirs, count), of(mine, asks), of(theirs, asks), stray, of(theirs, strays)),
	})
	return nil
}

// struggle lets processes of one side work on a play until one of them says that it is done.
func (b *bench) struggle(ctx context.Context, shape stage.Shape, name string) (s struggle, err error) {
	p, err := b.play(ctx, shape)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.Close(ctx)) }()
	client, err := b.stage.Client(name, -1, 0)
	if err != nil {
		return s, err
	}
	kubeconfig, err := client.Kubeconfig()
	if err != nil {
		return s, err
	}
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	p.Observer.Arm()
	from := time.Now()
	for !s.finished && s.lives < lives && ctx.Err() == nil {
		s.lives++
		args := append([]string{"-child=" + name, kubeconfig}, p.Nodes...)
		if s.finished, err = b.live(ctx, exec.CommandContext(ctx, self, args...)); err != nil {
			return s, err
		}
	}
	s.wall = time.Since(from)
	budget, err := p.Budget(ctx)
	if err := errors.Join(err, ctx.Err(), s.observe(p)); err != nil {
		return s, err
	}
	served, err := client.Served()
	s.evictions = served.Evictions
	fmt.Fprintf(os.Stderr, "  %s: %d lives, finished %t, %v, %d evictions, lowest %d; budget: %s\n", name, s.lives, s.finished, s.wall.Round(time.Millisecond), s.evictions, s.lowest, budget)
	return s, err
}

// live runs a process until it ends or its time is over, and reports whether it has finished its work.
func (b *bench) live(ctx context.Context, cmd *exec.Cmd) (finished bool, err error) {
	b.stage.Mark(cmd)
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("starting a process: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timer := time.NewTimer(lifetime)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err == nil, nil
	case <-timer.C:
	}
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return false, fmt.Errorf("killing a process: %w", err)
	}
	return <-ended == nil, ctx.Err()
}
