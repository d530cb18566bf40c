// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/belayproject/belay/examples/agent/internal/command"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/examples/internal/logging"
)

// Run executes a command of NewCommand with the arguments of this process, prints its error and returns the exit code.
func Run(c *cobra.Command) (code int) {
	if err := c.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		return 1
	}
	return 0
}

// NewCommand makes the command of the agent.
func NewCommand() *cobra.Command {
	c := &cobra.Command{
		Use:           "agent",
		Short:         "Give a kubelet its config from the API server, and go back to the last known good one by itself",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.SetGlobalNormalizationFunc(cliflag.WordSepNormalizeFunc)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return settings.ParseError(err) })
	c.AddCommand(runCommand(), updateCommand(), command.Status(), command.Explain(), command.Doctor(), command.ForgetBad(), command.UseLocal(), command.ConfigMap(), command.Sign(), command.Check(), versionCommand())
	c.AddCommand(command.Guard(), command.Stopping(), command.Ended())
	return c
}

func runCommand() *cobra.Command {
	var s settings.Run
	c := &cobra.Command{Use: "run [flags] -- CHILD [ARGUMENT]...", Short: "Supervise a kubelet and its config"}
	s.AddFlags(c.Flags())
	return logged(c, func(args []string) error {
		s.Child = args
		return s.Validate()
	}, func(ctx context.Context) error { return run(ctx, &s) })
}

func updateCommand() *cobra.Command {
	var s settings.Update
	c := &cobra.Command{
		Use: "update [flags]", Short: "Bring this node to what its NodeShadow orders, by hooks, and supervise nothing", Args: cobra.NoArgs,
	}
	s.AddFlags(c.Flags())
	return logged(c, func([]string) error { return s.Validate() }, func(ctx context.Context) error { return updates(ctx, &s) })
}

// logged is a sub-command that validates its flags, and then acts, with a log.
func logged(c *cobra.Command, validate func(args []string) error, act func(context.Context) error) *cobra.Command {
	begin := logging.AddFlags(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := validate(args); err != nil {
			return fmt.Errorf("the command line is wrong\n%w", err)
		}
		end, err := begin()
		if err != nil {
			return fmt.Errorf("the command line is wrong\n%w", err)
		}
		defer end()
		return act(c.Context())
	}
	return c
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which build this is",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), settings.Version())
			return err
		},
	}
}
