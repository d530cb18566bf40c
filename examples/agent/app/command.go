// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

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

// NewCommand makes the command of the agent, with parts of the caller's own. Where the options can't be used, the
// command fails with an error that says so whatever its arguments are.
func NewCommand(options ...Option) *cobra.Command {
	var own parts
	for _, add := range options {
		add(&own)
	}
	c := &cobra.Command{
		Use:           "agent",
		Short:         "Give a kubelet its config from the API server, and go back to the last known good one by itself",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       settings.Version(),
	}
	c.Flags().Bool("version", false, "print the version and exit") // without cobra's shorthand: -v is for logs elsewhere
	c.SetGlobalNormalizationFunc(cliflag.WordSepNormalizeFunc)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return settings.ParseError(err) })
	config := own.config
	c.AddCommand(runCommand(&own), updateCommand(&own), versionCommand())
	c.AddCommand(command.Status(config), command.Explain(config), command.Doctor(config), command.ForgetBad(config), command.UseLocal(config))
	c.AddCommand(command.ConfigMap(config), command.Sign(config), command.Check(config))
	c.AddCommand(command.Guard(config), command.Stopping(), command.Ended())
	return own.problems.Command(c)
}

func runCommand(own *parts) *cobra.Command {
	s := settings.Run{Local: settings.Local{Own: own.config}, Fleet: settings.Fleet{Updater: own.updaterName}}
	c := &cobra.Command{Use: "run [flags] -- CHILD [ARGUMENT]...", Short: "Supervise a kubelet and its config"}
	s.AddFlags(c.Flags())
	return own.logged(c, func(args []string) error {
		s.Child = args
		return s.Validate()
	}, func(ctx context.Context) error { return run(ctx, &s, own) })
}

func updateCommand(own *parts) *cobra.Command {
	s := settings.Update{Fleet: settings.Fleet{Updater: own.updaterName}}
	c := &cobra.Command{
		Use: "update [flags]", Short: "Bring this node to what its NodeShadow orders, by hooks, and supervise nothing", Args: cobra.NoArgs,
	}
	s.AddFlags(c.Flags())
	return own.logged(c, func([]string) error { return s.Validate() }, func(ctx context.Context) error { return updates(ctx, &s, own) })
}

// logged makes a sub-command that validates its flags and then acts, with a log: the program's own, or the one that
// flags describe.
func (p *parts) logged(c *cobra.Command, validate func(args []string) error, act func(context.Context) error) *cobra.Command {
	begin := func() (end func(), err error) { return func() {}, nil }
	if p.log == nil {
		begin = logging.AddFlags(c.Flags())
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := validate(args); err != nil {
			return fmt.Errorf("the command line is wrong\n%w", err)
		}
		end, err := begin()
		if err != nil {
			return fmt.Errorf("the command line is wrong\n%w", err)
		}
		defer end()
		ctx := c.Context()
		if p.log != nil {
			ctx = klog.NewContext(ctx, *p.log)
		}
		return act(ctx)
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
