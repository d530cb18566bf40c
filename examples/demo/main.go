// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/belayproject/belay/examples/demo/nodeprocess"
)

// maxNodes keeps the table readable and the machine alive.
const maxNodes = 50

// settings are the flags of the demo.
type settings struct {
	kubeconfig   string
	controlPlane string
	agent        string
	nodes        int
	trial        time.Duration
	threshold    int
	stepTimeout  time.Duration
	pause        time.Duration
}

func main() {
	runtime.LockOSThread() // the processes that are started here end with this thread, if nothing else ends them
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:           "demo",
		Short:         "Give a small fleet good and bad kubelet configs, and watch every node cope by itself",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.complete(); err != nil {
				return err
			}
			return run(c.Context(), s, os.Stdout)
		},
	}
	f := c.Flags()
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "use the cluster that this file names; all that the demo makes there is labelled, and removed at the end")
	f.StringVar(&s.controlPlane, "control-plane", "", "start a control plane of the demo's own with this command (arguments separated by spaces)")
	f.StringVar(&s.agent, "agent", "", "path of the reference agent (default: agent, beside the demo's own file)")
	f.IntVar(&s.nodes, "nodes", 4, "how many nodes to play")
	f.DurationVar(&s.trial, "trial", 4*time.Second, "healthy time after which a config is promoted, 1s or more")
	f.IntVar(&s.threshold, "crash-loop-threshold", 2, "how many crashes a config on trial is forgiven, 0 to 10")
	f.DurationVar(&s.stepTimeout, "step-timeout", 2*time.Minute, "how long to wait for what a step must lead to")
	f.DurationVar(&s.pause, "pause", 3*time.Second, "how long to show the end of a step on a terminal")
	c.AddCommand(nodeProcess())
	c.CompletionOptions.DisableDefaultCmd = true
	return c
}

// complete checks the flags and fills in what follows from others.
func (s *settings) complete() error {
	if s.agent == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("looking for the agent: %w; give its path with --agent", err)
		}
		s.agent = filepath.Join(filepath.Dir(self), "agent")
	}
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need((s.kubeconfig == "") != (s.controlPlane == ""), "give one of --kubeconfig and --control-plane")
	need(s.nodes >= 1 && s.nodes <= maxNodes, "--nodes must be 1 to %d, got %d", maxNodes, s.nodes)
	need(s.trial >= time.Second, "--trial must be 1s or more, got %s", s.trial)
	need(s.threshold >= 0 && s.threshold <= 10, "--crash-loop-threshold must be 0 to 10, got %d", s.threshold)
	need(s.stepTimeout > s.trial, "--step-timeout must be more than --trial, got %s", s.stepTimeout)
	need(s.pause >= 0, "--pause must not be negative, got %s", s.pause)
	_, err := os.Stat(s.agent)
	need(err == nil, "there is no agent at %q: build examples/agent, or give its path with --agent", s.agent)
	return errors.Join(errs...)
}

// nodeProcess is what the agents supervise. It is hidden: nobody else needs it.
func nodeProcess() *cobra.Command {
	o := nodeprocess.Options{Log: os.Stderr}
	c := &cobra.Command{
		Use:    "node-process",
		Short:  "Stand in for the kubelet of one node",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(c *cobra.Command, _ []string) error { return nodeprocess.Run(c.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.Config, "config", "", "path of the KubeletConfiguration")
	f.StringVar(&o.HealthzBindAddress, "healthz-bind-address", "", "the node's own address, in place of the config's")
	f.StringVar(&o.Journal, "journal", "", "path of a file to which each run adds what happened")
	return c
}
