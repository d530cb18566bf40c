// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/version"

	"github.com/belayproject/belay/examples/internal/drain/settings"
)

// The exit codes, as --help lists them.
const (
	exitDone = iota
	exitError
	exitUsage
	exitBlocked
	exitInterrupted
)

const exitCodes = `Exit codes:
  0  done: drained, held to the end or given back; for a plan: every pod can leave
  1  an error, or interrupted twice; what is left behind is listed
  2  the command line or the policy file is wrong; nothing was done
  3  blocked: at least one pod stays until somebody acts, or --timeout has passed
  4  interrupted: the nodes were given back as they were found`

const long = `Empty nodes for maintenance: cordon them, evict their pods, and leave them cordoned and marked with the holder.

Every PodDisruptionBudget is kept. A pod that can't leave is shown with its reason, its budget and what comes next, and
never stops its neighbours; it is waited for until it can leave or --timeout has passed. The pods of DaemonSets are always
skipped. Nodes are drained one at a time unless --max-nodes says otherwise.

Ctrl-C stops: no further eviction starts, the nodes are given back as they were found, and the pods that had left are
listed. A second Ctrl-C ends at once and lists what is left behind.

A node that is named like a sub-command comes after two dashes: drain -- plan

The flags and the forms of arguments are those of kubectl drain, and its connection flags too. Put on the PATH as
kubectl-belay-drain, the program is kubectl belay drain.

` + exitCodes

const examples = `  drain plan node-1 node-2                    # what would happen, and what would be in the way
  drain node-1 --timeout 30m                  # as kubectl drain --ignore-daemonsets
  drain -l pool=blue --max-nodes 10%          # a whole pool, a tenth of it at a time
  drain node-1 --escalate delete=15m          # after 15m delete what is still there, past every budget
  drain node/node-1 --dry-run=server          # the plan, each write of it judged by the API server
  drain release node-1                        # give it back
  drain uncordon node-1                       # give it back and open it, whatever has cordoned it`

// codedError ends the command with a code of its own. Err is nil where everything has been said.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *codedError) Unwrap() error { return e.err }

// exitCode tells what an error of a command means for whoever started it, and what is still to be said.
func exitCode(err error) (int, error) {
	var exit *codedError
	var usage *settings.UsageError
	switch {
	case err == nil:
		return exitDone, nil
	case errors.As(err, &exit):
		return exit.code, exit.err
	case errors.As(err, &usage):
		return exitUsage, err
	}
	return exitError, err
}

// Run executes a command of NewCommand with the arguments of this process. It prints the error and returns the exit code.
func Run(c *cobra.Command) int {
	code, err := exitCode(c.ExecuteContext(context.Background()))
	if err != nil {
		fmt.Fprintln(os.Stderr, "drain:", err)
	}
	return code
}

// NewCommand makes the command of drain, with parts of the caller's own. Where the options can't be used, the command fails with an error
// that says so whatever its arguments are.
func NewCommand(options ...Option) *cobra.Command {
	return newCommand(os.Stdout, os.Stderr, options...)
}

// newCommand makes the command, which writes to out and errs.
func newCommand(out, errs *os.File, options ...Option) *cobra.Command {
	var s settings.Drain
	a := &app{out: out, errs: errs, exit: os.Exit, id: readRunID()}
	for _, add := range options {
		add(&a.own)
	}
	c := checked(&s, &s.Names, func(ctx context.Context) error {
		if dry := s.DryRun; dry != settings.DryRunNone {
			return a.plan(ctx, &s.Plan, dry, false)
		}
		return a.drain(ctx, &s)
	})
	c.Use, c.Short, c.Long, c.Example = "drain NODE... | --selector SELECTOR", "Empty nodes for maintenance, and keep every PodDisruptionBudget", long, examples
	c.Args, c.SilenceUsage, c.SilenceErrors = cobra.ArbitraryArgs, true, true
	c.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: programName(os.Args[0])}
	c.Version = version.Get().GitVersion
	c.Flags().Bool("version", false, "print the version and exit") // without cobra's shorthand: -v is for logs elsewhere
	c.SetOut(out)
	c.SetErr(errs)
	c.SetGlobalNormalizationFunc(cliflag.WordSepNormalizeFunc)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return settings.ParseError(err) })
	c.CompletionOptions.DisableDefaultCmd = true
	c.AddCommand(planCommand(a), cordonCommand(a, true), cordonCommand(a, false), releaseCommand(a), holdCommand(a),
		resumeCommand(a))
	return a.own.problems.Command(c)
}

// programName is how a user calls a program of that path: a plugin by the words that kubectl makes of its name.
func programName(path string) string {
	name := filepath.Base(path)
	words, isPlugin := strings.CutPrefix(strings.TrimSuffix(name, ".exe"), "kubectl-")
	if !isPlugin {
		return "drain"
	}
	return "kubectl " + strings.ReplaceAll(strings.ReplaceAll(words, "-", " "), "_", "-")
}

// told is what a command line says.
type told interface {
	AddFlags(*pflag.FlagSet)
	Validate() error
}

// checked makes a command that acts if what it is told is valid. names takes its arguments.
func checked(s told, names *[]string, act func(context.Context) error) *cobra.Command {
	c := &cobra.Command{RunE: func(c *cobra.Command, args []string) error {
		*names = args
		if err := s.Validate(); err != nil {
			return err
		}
		return act(c.Context())
	}}
	c.Flags().SortFlags = false
	s.AddFlags(c.Flags())
	return c
}

func planCommand(a *app) *cobra.Command {
	var s settings.Plan
	var unproven, requireFit bool
	c := checked(&s, &s.Names, func(ctx context.Context) error {
		if unproven {
			return a.plan(ctx, &s, settings.DryRunClient, requireFit)
		}
		return a.plan(ctx, &s, settings.DryRunNone, requireFit)
	})
	c.Flags().BoolVar(&requireFit, "require-fit", false,
		"exit with 3 also where no node can take a pod's replacement, by an estimate of what the scheduler would do")
	c.Flags().BoolVar(&unproven, "unproven", false,
		"don't ask the API server about the evictions: admission may refuse what the plan lets go")
	c.Use, c.Short = "plan NODE... | --selector SELECTOR", "Say what a drain would do with each pod and why, and do nothing"
	c.Long = "Say what a drain would do with each pod and why, and do nothing. The API server judges each eviction in\n" +
		"a dry run, so that the plan knows what admission refuses.\n\n" +
		"The plan is for all the nodes together, with the decisions that the drain itself would take now. A round is the time in which evicted\n" +
		"pods are replaced, so that their budget allows the next ones.\n\n" + exitCodes
	return c
}

func cordonCommand(a *app, unschedulable bool) *cobra.Command {
	var s settings.Cordon
	c := checked(&s, &s.Names, func(ctx context.Context) error { return a.setCordon(ctx, &s, unschedulable) })
	c.Use, c.Short = "cordon NODE... | --selector SELECTOR", "Mark nodes as unschedulable, as kubectl cordon does"
	c.Long = "Mark nodes as unschedulable. Their pods stay.\n\nThe exit code is 1 where a node could not be written; " +
		"the others are.\n\n" + exitCodes
	if !unschedulable {
		c.Use, c.Short = "uncordon NODE... | --selector SELECTOR", "Mark nodes as schedulable, as kubectl uncordon does"
		c.Long = "Mark nodes as schedulable, whatever has cordoned them. A mark of this holder is released; marks of " +
			"others stay,\n" +
			"and their drains pause.\n\nThe exit code is 1 where a node could not be written; the others are.\n\n" + exitCodes
	}
	return c
}

func releaseCommand(a *app) *cobra.Command {
	var s settings.Release
	c := checked(&s, &s.Names, func(ctx context.Context) error { return a.release(ctx, &s) })
	c.Use, c.Short = "release NODE... | --selector SELECTOR", "Give nodes back: uncordon those that this holder has cordoned"
	c.Long = "Give nodes back. A node is uncordoned by the last of its holders, and only if it was schedulable before the first.\n" +
		"What the holder has asked of pods by --responder is taken back.\n\n" + exitCodes
	return c
}

func holdCommand(a *app) *cobra.Command {
	var s settings.Hold
	c := checked(&s, &s.Names, func(ctx context.Context) error { return a.hold(ctx, &s) })
	c.Use, c.Short = "hold NODE... --for TIME", "Cordon nodes and let them go without their kubelet for a time, without losing their pods"
	c.Long = "Cordon nodes, leave their pods, and renew their Leases in place of the kubelet until the time is over, so that a kubelet may be\n" +
		"stopped without the pods being taken for lost. A node that dies meanwhile is noticed only then.\n\nIt runs until then. Ctrl-C ends the hold " +
		"early and gives the nodes back.\n\n" + exitCodes
	return c
}

func resumeCommand(a *app) *cobra.Command {
	var s settings.Resume
	c := checked(&s, new([]string), func(ctx context.Context) error { return a.resume(ctx, &s) })
	c.Use, c.Short = "resume", "Let the drains of this holder go on after a node that came back has gone bad"
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return settings.Usage(fmt.Errorf("resume takes no names of nodes, got %q: it is for all nodes of the holder", args))
		}
		return nil
	}
	return c
}
