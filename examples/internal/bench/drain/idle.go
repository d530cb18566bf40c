// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/internal/backoff"
)

const (
	idleDrains = 100
	idleShare  = 0.01 // of a core
	planBar    = time.Millisecond
)

// idle is S8. It needs no API server: what it measures happens between two events.
func idle(ctx context.Context, b *bench) error {
	if err := b.weigh(); err != nil {
		return err
	}
	p := newPaper()
	options := kube.CacheOptions{}
	factory := kube.NewFactory(p.set, options)
	cache, err := kube.NewCache(factory, options)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.StartWithContext(ctx)
	if err := cache.WaitForSync(ctx); err != nil {
		return err
	}
	drainer, err := drain.New(drain.Options{Cache: cache.View(), Client: p})
	if err != nil {
		return err
	}
	if err := b.plan(ctx, drainer); err != nil {
		return err
	}
	return b.rest(ctx, p, drainer)
}

// weigh compares the memory of a pod in our cache with that of one as it came from the wire.
func (b *bench) weigh() error {
	const pods = 5000
	kept := make([]*corev1.Pod, pods)
	weight := func(change func(*corev1.Pod) (any, error)) (float64, error) {
		clear(kept)
		before := heap()
		for i := range kept {
			obj, err := change(paperPod(i))
			pod, ok := obj.(*corev1.Pod)
			if err != nil || !ok {
				return 0, fmt.Errorf("transforming a pod: %T, %w", obj, err)
			}
			kept[i] = pod
		}
		after := heap()
		runtime.KeepAlive(kept)
		return float64(after-before) / pods, nil
	}
	full, err := weight(func(p *corev1.Pod) (any, error) { return p, nil })
	if err != nil {
		return err
	}
	slim, err := weight(func(p *corev1.Pod) (any, error) { return kube.Transform(p) })
	if err != nil {
		return err
	}
	b.print(line{
		name: "S8.pod", ours: fmt.Sprintf("%.0fB", slim), peer: fmt.Sprintf("%.0fB", full), ratio: fmt.Sprintf("%.3f", slim/full), bar: "1",
		good: slim < full, more: fmt.Sprintf("memory of a pod after kube.Transform; peer: without it; %d pods: %.0f MB", paperNodes*paperPodsPerNode, slim*paperNodes*paperPodsPerNode/1e6),
	})
	return nil
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first found to be finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// plan measures the decision about one node.
func (b *bench) plan(ctx context.Context, drainer *drain.Drainer) error {
	result, err := drainer.Plan(ctx, drain.Policy{}, paperNode(0))
	if err != nil {
		return err
	}
	if n := len(result.Nodes[0].Pods); n != paperPodsPerNode {
		return fmt.Errorf("the plan has %d pods, want %d", n, paperPodsPerNode)
	}
	measured := testing.Benchmark(func(t *testing.B) {
		t.ReportAllocs()
		for t.Loop() {
			if _, err := drainer.Plan(ctx, drain.Policy{}, paperNode(0)); err != nil {
				t.Fatal(err)
			}
		}
	})
	took := time.Duration(measured.NsPerOp())
	b.print(line{
		name: "S8.plan", ours: took.String(), ratio: fmt.Sprintf("%.3f", float64(took)/float64(planBar)), bar: planBar.String(), good: took <= planBar,
		more: fmt.Sprintf("one node of %d pods among %d, %d budgets in each namespace; %d allocs, %d bytes; ratio to the bar",
			paperPodsPerNode, paperNodes, paperApps, measured.AllocsPerOp(), measured.AllocedBytesPerOp()),
	})
	return nil
}

// rest measures what this process burns while drains wait for budgets that don't open.
func (b *bench) rest(ctx context.Context, p *paper, drainer *drain.Drainer) error {
	// The runtime collects its garbage every 2 minutes at the latest: a shorter window has that collection in it, or not.
	window := 2 * time.Minute
	if b.quick {
		window = 20 * time.Second
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var nodes []string
	for i := range idleDrains {
		nodes = append(nodes, paperNode(i))
	}
	ended := make(chan error, 1)
	go func() {
		failed, why := drainAll(ctx, drainer, plan{}, nodes)
		ended <- fmt.Errorf("%d drains ended: %w", failed, why)
	}()
	if err := p.calm(ctx, ended); err != nil {
		return err
	}
	asked, used, from := p.asks.Load(), cpu(), time.Now()
	select {
	case err := <-ended:
		return err
	case <-time.After(window):
	}
	share := float64(cpu()-used) / float64(time.Since(from))
	asked = p.asks.Load() - asked
	b.print(line{
		name: "S8.idle", ours: fmt.Sprintf("%.4f", share), ratio: fmt.Sprintf("%.3f", share/idleShare), bar: fmt.Sprint(idleShare), good: share <= idleShare,
		more: fmt.Sprintf("cores, over %v, of %d blocked drains of %d pods with %d pods in the cache; %d requests in that time",
			window, idleDrains, paperPodsPerNode, paperNodes*paperPodsPerNode, asked),
	})
	fmt.Fprintf(os.Stderr, "  %d requests before\n", p.asks.Load()-asked)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// calm waits until every node is cordoned and nothing has been asked for a while.
func (p *paper) calm(ctx context.Context, ended <-chan error) error {
	for quiet, last := 0, int64(0); quiet < 3; {
		select {
		case err := <-ended:
			return err
		default:
		}
		if !backoff.Sleep(ctx, time.Second) {
			return errors.Join(ctx.Err(), <-ended)
		}
		if now := p.asks.Load(); now < idleDrains || now != last {
			quiet, last = 0, now
		} else {
			quiet++
		}
	}
	return nil
}

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
