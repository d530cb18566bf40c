// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/belayproject/belay/machine"
)

// The exit codes, as --help lists them.
const (
	exitAccepted = iota
	exitRejected
	exitUsage
)

const long = `Say before a change of machines is applied what it would break: quorum, the control plane, the last of a role, data on one machine alone.

--before has what is, as kubectl get machines,machinesets,machinedeployments,nodes,persistentvolumes,pods -A -o yaml writes it, and a
document of the kind Members. --after has the manifests that are to be applied. Nothing is asked of any server.

Exit codes:
  0  nothing is rejected
  1  something is rejected
  2  the command line or a file is wrong; nothing was judged`

// errRejected means that everything has been said.
var errRejected = errors.New("rejected")

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the command, with its exit code.
func run(args []string, out, errs io.Writer) int {
	c := command(out)
	c.SetArgs(args)
	c.SetOut(out)
	c.SetErr(errs)
	switch err := c.Execute(); {
	case err == nil:
		return exitAccepted
	case errors.Is(err, errRejected):
		return exitRejected
	default:
		_, _ = fmt.Fprintln(errs, "machinegate:", err)
		return exitUsage
	}
}

func command(out io.Writer) *cobra.Command {
	var (
		before, after, format string
		as                    map[string]string
	)
	c := &cobra.Command{
		Use: "machinegate --before DIR --after DIR", Short: "Say what a change of machines would break", Long: long,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			severities, err := severities(as)
			if err != nil {
				return err
			}
			if format != "text" && format != "json" {
				return fmt.Errorf("--output %q: want text or json", format)
			}
			was, err := read(before)
			if err != nil {
				return fmt.Errorf("--before: %w", err)
			}
			will, err := read(after)
			if err != nil {
				return fmt.Errorf("--after: %w", err)
			}
			return judge(was, will, severities).write(out, format)
		},
	}
	c.Flags().StringVar(&before, "before", "", "directory with what is")
	c.Flags().StringVar(&after, "after", "", "directory with what the change wants")
	c.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	c.Flags().StringToStringVar(&as, "as", nil, "what the findings of a gate are taken for, as LocalData=Warn: Warn, Block or Ignore")
	_ = c.MarkFlagRequired("before") // they are there
	_ = c.MarkFlagRequired("after")
	return c
}

// severities reads --as.
func severities(as map[string]string) (map[machine.Gate]machine.Severity, error) {
	gates := []machine.Gate{
		machine.GateUnknown, machine.GateDecommission, machine.GateControlPlane, machine.GateQuorum, machine.GateRole, machine.GateLocalData, machine.GateReplica,
	}
	all := map[machine.Gate]machine.Severity{}
	for gate, severity := range as {
		if !slices.Contains(gates, machine.Gate(gate)) {
			return nil, fmt.Errorf("--as %s=%s: %q is no gate: want one of %q", gate, severity, gate, gates)
		}
		if s := machine.Severity(severity); s != machine.Warn && s != machine.Block && s != machine.Ignore {
			return nil, fmt.Errorf("--as %s=%s: want Warn, Block or Ignore", gate, severity)
		}
		all[machine.Gate(gate)] = machine.Severity(severity)
	}
	return all, nil
}
