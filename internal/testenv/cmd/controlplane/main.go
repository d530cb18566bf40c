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
	stdin := flag.Bool("stdin", false, "take orders from standard input, and end when it ends")
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
	if err := run(ctx, *with, orders); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

// run starts the control plane and keeps it until ctx or the orders, which may be nil, end.
func run(ctx context.Context, with string, orders io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan string)
	if orders != nil { // from the start on: the owner may be gone before the control plane is ready
		go func() { defer cancel(); read(ctx, orders, lines) }()
	}
	var options testenv.Options
	for name := range strings.SplitSeq(with, ",") {
		if name != "" {
			options.With = append(options.With, testenv.Component(name))
		}
	}
	start := time.Now()
	env, err := testenv.New(ctx, options)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "control plane ready in %.1fs at %s\n", time.Since(start).Seconds(), env.Config().Host)
	fmt.Println(env.Kubeconfig())
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
