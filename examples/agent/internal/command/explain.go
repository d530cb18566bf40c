// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/belayproject/belay/examples/agent/internal/checkup"
	"github.com/belayproject/belay/examples/agent/internal/node"
	"github.com/belayproject/belay/examples/internal/agent/doctor"
	"github.com/belayproject/belay/examples/internal/agent/report"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
)

// Explain prints what status does, where each field comes from, and what has happened.
func Explain(own settings.Parts) *cobra.Command {
	s := shown{local: settings.Local{Own: own}}
	return s.addFlags(&cobra.Command{
		Use:   "explain --state-dir DIR --init-config FILE",
		Short: "Say what status says, where each field of the config comes from, and what has happened; also when no agent runs",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return s.status(c.Context(), func(f report.Format, d report.Document) error {
				e, err := node.Explain(c.Context(), s.local.StateDir, s.local.Options())
				if err != nil {
					return err
				}
				past, err := node.History(c.Context(), s.local.StateDir)
				if err != nil {
					d.Trouble = append(d.Trouble, err.Error())
				}
				return report.WriteStory(c.OutOrStdout(), f, report.Story{Document: d, Fields: e.Fields, History: past})
			})
		},
	})
}

// errProblems makes the exit status tell.
var errProblems = errors.New("there are problems")

// Doctor prints what is wrong with the setup of this node, and what helps.
func Doctor(own settings.Parts) *cobra.Command {
	s := settings.Run{Local: settings.Local{Own: own}}
	var format, unit string
	c := &cobra.Command{
		Use:   "doctor [flags of run] [-- CHILD]",
		Short: "Say what keeps this node from its config, and what helps; also when no agent runs. Exits with 1 if there is a problem",
		RunE: func(c *cobra.Command, args []string) error {
			f, err := report.ParseFormat(format)
			if err != nil {
				return err
			}
			s.Child = args
			facts, err := checkup.Look(c.Context(), &s, unit)
			if err != nil {
				return err
			}
			return writeFindings(c.OutOrStdout(), f, doctor.Examine(facts))
		},
	}
	s.AddFlags(c.Flags())
	c.Flags().StringVar(&unit, "unit", "belay-agent.service", "systemd unit that starts the agent; empty: none is looked at")
	addOutput(c, &format)
	return c
}

func writeFindings(w io.Writer, f report.Format, r doctor.Report) error {
	var err error
	if f == report.Table {
		_, err = fmt.Fprint(w, page.Findings(r))
	} else {
		err = report.WriteData(w, f, r)
	}
	if err == nil && r.Problems > 0 {
		err = errProblems
	}
	return err
}
