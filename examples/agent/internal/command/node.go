// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belayproject/belay/examples/agent/internal/admin"
	"github.com/belayproject/belay/examples/agent/internal/node"
	"github.com/belayproject/belay/examples/internal/agent/report"
	"github.com/belayproject/belay/examples/internal/agent/settings"
)

// onNode opens the node of a command line and calls act.
func onNode(ctx context.Context, l *settings.Local, act func(a admin.Agent, live bool) error) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if l.StateDir == "" {
		return &settings.FlagError{Flag: "state-dir", Want: "must name the state directory of the agent, such as /var/lib/belay-agent; of an agent without one, dynamic config is switched off here, and there is nothing to show"}
	}
	a, live, err := node.Open(ctx, l.StateDir, l.Options())
	if err != nil {
		return err
	}
	return act(a, live)
}

// shown is a command that shows something of a node: its flags, and how it is written.
type shown struct {
	local  settings.Local
	output string
}

func (s *shown) addFlags(c *cobra.Command) *cobra.Command {
	s.local.AddFlags(c.Flags())
	addOutput(c, &s.output)
	return c
}

func addOutput(c *cobra.Command, format *string) {
	c.Flags().StringVarP(format, "output", "o", string(report.Table), "table, json or yaml")
}

// status asks the node of the command line what it does, and calls write.
func (s *shown) status(ctx context.Context, write func(f report.Format, d report.Document) error) error {
	f, err := report.ParseFormat(s.output)
	if err != nil {
		return err
	}
	return onNode(ctx, &s.local, func(a admin.Agent, _ bool) error {
		d, err := a.Status(ctx)
		if err != nil {
			return err
		}
		return write(f, d)
	})
}

// Status prints which config the node uses, why, and what the next start would do.
func Status(own settings.Parts) *cobra.Command {
	s := shown{local: settings.Local{Own: own}}
	return s.addFlags(&cobra.Command{
		Use:   "status --state-dir DIR",
		Short: "Say which config this node uses, why and since when, what was rejected, and what the next start would do",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return s.status(c.Context(), func(f report.Format, d report.Document) error { return report.Write(c.OutOrStdout(), f, d) })
		},
	})
}

// ForgetBad takes back the rejection of a config.
func ForgetBad(own settings.Parts) *cobra.Command {
	l := settings.Local{Own: own}
	c := &cobra.Command{
		Use:   "forget-bad UID --state-dir DIR",
		Short: "Take back the rejection of a config, so that it is tried again",
		Args:  one("the UID of a rejected config, as status shows it"),
		RunE: func(c *cobra.Command, args []string) error {
			return onNode(c.Context(), &l, func(a admin.Agent, live bool) error {
				return forget(c.Context(), c.OutOrStdout(), a, live, args[0])
			})
		},
	}
	l.AddFlags(c.Flags())
	return c
}

func forget(ctx context.Context, w io.Writer, a admin.Agent, live bool, uid string) error {
	before, err := a.Status(ctx)
	if err != nil {
		return err
	}
	if err := a.ForgetBad(ctx, uid); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("nothing is held against UID %q; %s", uid, rejectedUIDs(before.Rejected))
		}
		return err
	}
	for _, r := range before.Rejected {
		if r.UID == uid {
			fmt.Fprintf(w, "Forgot that %s/%s (UID %s) was rejected: %s\n", r.Namespace, r.Name, r.UID, r.Reason)
		}
	}
	after, err := a.Status(ctx)
	if err != nil {
		return err
	}
	return follows(w, after, live)
}

func rejectedUIDs(list []report.Rejected) string {
	if len(list) == 0 {
		return "no config is rejected"
	}
	var uids []string
	for _, r := range list {
		uids = append(uids, r.UID)
	}
	return "rejected are " + strings.Join(uids, ", ")
}

// UseLocal leaves the assigned config for the local one.
func UseLocal(own settings.Parts) *cobra.Command {
	l := settings.Local{Own: own}
	var reason string
	c := &cobra.Command{
		Use:   "use-local --state-dir DIR",
		Short: "Leave the assigned config for the one that the node was provisioned with",
		Long: "Leave the assigned config for the one that the node was provisioned with.\n\nThe assigned and the last known good config are " +
			"rejected with the given reason, so that the node doesn't take them up again until they are forgotten. A newer config is taken up.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return onNode(c.Context(), &l, func(a admin.Agent, live bool) error {
				return useLocal(c.Context(), c.OutOrStdout(), a, live, reason)
			})
		},
	}
	l.AddFlags(c.Flags())
	c.Flags().StringVar(&reason, "reason", "use-local was asked for on the node", "why, for the status of the node")
	return c
}

func useLocal(ctx context.Context, w io.Writer, a admin.Agent, live bool, reason string) error {
	before, err := a.Status(ctx)
	if err != nil {
		return err
	}
	if err := a.UseLocal(ctx, reason); err != nil {
		return err
	}
	after, err := a.Status(ctx)
	if err != nil {
		return err
	}
	for _, r := range after.Rejected {
		if !held(before.Rejected, r) {
			fmt.Fprintf(w, "Rejected %s/%s (UID %s): %s\n", r.Namespace, r.Name, r.UID, r.Reason)
		}
	}
	fmt.Fprintln(w, "The local config is assigned, and the one to go back to. Rejected configs stay away until forget-bad UID; others are taken up.")
	return follows(w, after, live)
}

func held(list []report.Rejected, r report.Rejected) bool {
	for _, b := range list {
		if b.UID == r.UID && b.Key == r.Key && b.Digest == r.Digest {
			return true
		}
	}
	return false
}

// follows says what comes next, by what the node said right after it was changed: an agent that is running acts
// meanwhile.
func follows(w io.Writer, d report.Document, live bool) error {
	if live {
		fmt.Fprintln(w, "The agent is running: it acts now, with a restart of its child where another config is to be used.")
	} else {
		fmt.Fprintln(w, "No agent is running: the next start goes by this.")
	}
	return report.WriteNext(w, d)
}

// one asks for exactly one argument and says which.
func one(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return fmt.Errorf("%s has %d arguments: must be one, %s", c.Name(), len(args), what)
		}
		return nil
	}
}
