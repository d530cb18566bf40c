// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/belayproject/belay/examples/demo/internal/nodeprocess"
	"github.com/belayproject/belay/examples/demo/internal/settings"
)

func main() {
	runtime.LockOSThread() // the processes that are started here end with this thread, if nothing else ends them
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(exitStatus(err))
	}
}

// refusal is the exit status by which a program of --prove-command refuses a config: EX_DATAERR.
const refusal = 65

func exitStatus(err error) int {
	if errors.Is(err, nodeprocess.ErrRefused) {
		return refusal
	}
	return 1
}

func command() *cobra.Command {
	var s settings.Settings
	c := &cobra.Command{
		Use:           "demo",
		Short:         "Give a small fleet good and bad kubelet configs, and watch every node cope by itself",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.Complete(); err != nil {
				return err
			}
			return run(c.Context(), s, os.Stdout)
		},
	}
	s.AddFlags(c.Flags())
	c.AddCommand(nodeProcess(), fleetCommand())
	c.CompletionOptions.DisableDefaultCmd = true
	return c
}

// fleetCommand plays rollouts over many nodes.
func fleetCommand() *cobra.Command {
	var s settings.Fleet
	c := &cobra.Command{
		Use:   "fleet",
		Short: "Roll configs out over many nodes, one of them fatal, and watch the rollout stop by itself",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.Complete(); err != nil {
				return err
			}
			return runFleet(c.Context(), s, os.Stdout)
		},
	}
	s.AddFlags(c.Flags())
	return c
}

// nodeProcess is what the agents supervise. It is hidden from users.
func nodeProcess() *cobra.Command {
	o := nodeprocess.Options{Log: os.Stderr}
	var check bool
	c := &cobra.Command{
		Use:    "node-process [flags] [-- KUBELET ARGUMENT...]",
		Short:  "Stand in for the kubelet of one node, or run one",
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			if check {
				return nodeprocess.CheckConfig(o.Config)
			}
			o.Program = args
			return nodeprocess.Run(c.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Config, "config", "", "path of the KubeletConfiguration")
	f.BoolVar(&check, "check", false, "only say whether the stand-in would start with the config: exit status 65 if not")
	f.StringVar(&o.DropIn, "drop-in", "", "path of a file that is used in place of --config while it is there")
	f.StringVar(&o.Address, "address", "", "the node's own address, in place of the config's")
	f.StringVar(&o.Journal, "journal", "", "path of a file to which each run adds what happened")
	return c
}
