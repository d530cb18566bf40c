// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/belayproject/belay/internal/testenv"
)

// parentPoll is how often the parent is looked for. A signal at its death would be tied to one of its threads.
const parentPoll = 200 * time.Millisecond

func main() {
	with := flag.String("with", "", "further servers, separated by commas: kube-controller-manager, kube-scheduler, kwok")
	fleet := flag.Bool("fleet", false, "set the further servers up for a thousand nodes: more requests a second, rare heartbeats, and patience with late ones")
	stdin := flag.Bool("stdin", false, "take orders from standard input, and end when it ends")
	wait := flag.Bool("wait", false,
		"with -stdin: print the path at once, build the servers meanwhile, and start them at the order start")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { defer cancel(); awaitOrphaned(ctx, os.Getppid()) }()
	var orders io.Reader
	if *stdin {
		orders = os.Stdin
	}
	if err := run(ctx, servers(*with, *fleet), orders, *wait && *stdin); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

// servers are those that the flags name.
func servers(with string, fleet bool) testenv.Options {
	var o testenv.Options
	for name := range strings.SplitSeq(with, ",") {
		if name != "" {
			o.With = append(o.With, testenv.Component(name))
		}
	}
	if !fleet {
		return o
	}
	busy := []string{"--kube-api-qps=500", "--kube-api-burst=500"}
	args := map[testenv.Component][]string{
		testenv.ControllerManager: append([]string{"--node-monitor-grace-period=30m"}, busy...), testenv.Scheduler: busy,
		testenv.Kwok: {"--node-lease-duration-seconds=400"},
	}
	o.Args = map[testenv.Component][]string{}
	for _, name := range o.With {
		o.Args[name] = args[name]
	}
	return o
}

// run starts the control plane and keeps it until ctx or the orders, which may be nil, end. With wait it starts it at
// an order.
func run(ctx context.Context, options testenv.Options, orders io.Reader, wait bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan string)
	if orders != nil { // from the start on: the owner may be gone before the control plane is ready
		go func() { defer cancel(); read(ctx, orders, lines) }()
	}
	start := time.Now()
	if wait {
		options.Prepared = func(kubeconfig string) { fmt.Println(kubeconfig) }
		options.Begin = func(ctx context.Context) error {
			err := awaitStart(ctx, lines)
			start = time.Now()
			return err
		}
	}
	env, err := testenv.New(ctx, options)
	if ctx.Err() != nil && err == ctx.Err() { //nolint:errorlint // itself: nothing is left
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "control plane ready in %.1fs at %s\n", time.Since(start).Seconds(), env.Config().Host)
	if wait {
		fmt.Println(started)
	} else {
		fmt.Println(env.Kubeconfig())
	}
	o := orderly{env: env}
	return errors.Join(o.obey(ctx, lines), env.Close())
}

// awaitOrphaned returns when the parent has died: the system then gives this process another one.
func awaitOrphaned(ctx context.Context, parent int) {
	ticker := time.NewTicker(parentPoll)
	defer ticker.Stop()
	for os.Getppid() == parent {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
