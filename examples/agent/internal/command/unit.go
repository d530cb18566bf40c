// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/examples/agent/internal/node"
	"github.com/belayproject/belay/examples/agent/internal/wire"
	"github.com/belayproject/belay/examples/internal/agent/drift"
	"github.com/belayproject/belay/examples/internal/agent/history"
	"github.com/belayproject/belay/examples/internal/agent/settings"
)

// Guard counts a start of the unit and puts the config in place that it is to use, from disk alone, as its ExecStartPre
// command.
func Guard(own settings.Parts) *cobra.Command {
	g := settings.Guard{Local: settings.Local{Own: own}}
	c := &cobra.Command{
		Use:   "guard --state-dir DIR --render FILE [flags]",
		Short: "Count a start and put its config in place, as ExecStartPre of a systemd unit, also where no agent comes up",
		Long: "Count a start and put its config in place, as ExecStartPre of a systemd unit, also where no agent comes up.\n\n" +
			"The flags that judge a config must be those of agent run. Where an agent holds the state directory, it counts the starts itself.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := g.Validate(); err != nil {
				return err
			}
			return within(c.Context(), g.Timeout, func(ctx context.Context) error { return guard(ctx, c.OutOrStdout(), &g) })
		},
	}
	g.AddFlags(c.Flags())
	return c
}

// within bounds act, also where a disk hangs: then the process ends all the same, and with it the call that is left
// behind.
func within(ctx context.Context, d time.Duration, act func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d, fmt.Errorf("not done within --timeout=%s", d))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- act(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func guard(ctx context.Context, w io.Writer, g *settings.Guard) error {
	o := g.Options()
	store, err := checkpoint.Open(g.StateDir, checkpoint.Options{})
	if errors.Is(err, checkpoint.ErrLocked) {
		fmt.Fprintln(w, "An agent holds the state directory: it counts the starts, and the config in place stays.")
		return nil
	}
	closing := func() error { return nil }
	if err == nil { // else the local config, which needs no records
		o, closing = g.On(store), store.Close
	}
	u, closeUnit, unitErr := node.OpenUnit(ctx, g.StateDir)
	_, guardErr := restart.Guard(ctx, o, u, func(ctx context.Context, a configsync.Active[*kubelet.Config]) error {
		fmt.Fprintf(w, "%s: %s\n", a.Verdict.Condition.Message, a.Verdict.Condition.Reason)
		file, err := node.Rendered(ctx, g.Place(g.Render), drift.Report, o.Store, func(ctx context.Context, e history.Entry) error {
			journal, err := history.Open(ctx, o.Store, nil)
			if err != nil {
				return err
			}
			return journal.Add(ctx, e)
		})
		if err != nil {
			return err
		}
		if err := wire.Put(ctx, file, o, a); err != nil {
			return err
		}
		return wire.PrepareState(ctx, klog.FromContext(ctx), kubelet.StateFiles{RootDir: g.KubeletRootDir}, o, a.Config)
	})
	return errors.Join(guardErr, err, unitErr, closeUnit(), closing())
}

// Stopping notes that the unit is stopped because somebody asked for it, as its ExecStop command.
func Stopping() *cobra.Command {
	return unitCommand("stopping", "Note that a stop was asked for, as ExecStop of a systemd unit", func(ctx context.Context, stateDir string) error {
		if os.Getenv("MAINPID") == "" {
			return nil // the main process has ended by itself
		}
		return node.OnUnit(ctx, stateDir, func(u restart.Unit) error { return u.Stopping(ctx) })
	})
}

// Ended notes how the main process of the unit ended, as its ExecStopPost command.
func Ended() *cobra.Command {
	return unitCommand("ended", "Note how the main process ended, as ExecStopPost of a systemd unit", func(ctx context.Context, stateDir string) error {
		end, err := restart.EndFromEnv(os.Getenv)
		if err != nil {
			return err
		}
		return node.OnUnit(ctx, stateDir, func(u restart.Unit) error { return u.Ended(ctx, end) })
	})
}

func unitCommand(name, short string, act func(ctx context.Context, stateDir string) error) *cobra.Command {
	var u settings.Unit
	c := &cobra.Command{
		Use: name + " --state-dir DIR", Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := u.Validate(); err != nil {
				return err
			}
			return within(c.Context(), u.Timeout, func(ctx context.Context) error { return act(ctx, u.StateDir) })
		},
	}
	u.AddFlags(c.Flags())
	return c
}
