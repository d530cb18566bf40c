// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controlplane starts a control plane for the demo and removes it again.
//
// It prints the path of an administrator's kubeconfig, alone on a line of standard output, once the API server is
// ready; everything else goes to standard error. It ends, and with it every server and file, on SIGINT or SIGTERM,
// when its parent dies, with -stdin when its standard input ends, and after a kill.
package main

import (
	"context"
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
	stdin := flag.Bool("stdin", false, "end when standard input ends")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { defer cancel(); awaitOrphaned(ctx, os.Getppid()) }()
	if *stdin {
		go func() { defer cancel(); io.Copy(io.Discard, os.Stdin) }()
	}
	if err := run(ctx, *with); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, with string) error {
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
	<-ctx.Done()
	return env.Close()
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
