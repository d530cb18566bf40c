// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	drainsettings "github.com/belayproject/belay/examples/internal/drain/settings"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/settings"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// The exit codes, as --help lists them.
const (
	exitDone = iota
	exitError
	exitUsage
	exitStands
	exitRefused
	exitUnanswered
)

const exitCodes = `Exit codes:
  0  done; of a report: nothing in it needs anybody
  1  an error: the API server, a right that is missing, a name that does not exist
  2  the command line is wrong; nothing was done
  3  the rollout is stopped, or something is in its way (status), the plan does not come to its end (plan), or there are problems (doctor)
  4  the controller has refused the verb
  5  the verb was asked for, and was not answered in time: it may be carried out later; or what it stops is not proven to have stopped`

const long = `Run rollouts: see how far they are and why nodes wait, plan them ahead, and steer them.

A verb is one patch of the Rollout with a request ID of its own; the command waits until the controller has answered that
request, and says what came of it. install applies definitions, rights and policies. Everything else changes nothing.

` + exitCodes

const examples = `  kubectl belay status fleet --watch          # how far it is, until it is over
  kubectl belay why node-7                    # why this node waits, and what would change it
  kubectl belay plan -f rollout.yaml          # order, stages, time, and what can break, before anything is applied
  kubectl belay pause fleet                   # and resume, abort, promote, accept, rollback, acknowledge
  kubectl belay doctor                        # what keeps rollouts from working, and what helps
  kubectl belay install --dry-run             # the definitions, rights and policies, as the API server would take them`

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
	var usage *drainsettings.UsageError
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

// Run executes a command of NewCommand with the arguments of this process until it ends or SIGTERM or SIGINT arrives. It prints the
// error and returns the exit code. The log of klog is discarded while a command of this package runs, not while one of
// [WithCommand] does.
func Run(c *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	ctx = context.WithValue(ctx, ownProcess{}, true)
	code, err := exitCode(c.ExecuteContext(ctx))
	stop()
	if err != nil {
		say(os.Stderr, "kubectl-belay: ", err.Error())
	}
	return code
}

// ownProcess is the key of contexts of [Run], which has the process, and so its log, for itself.
type ownProcess struct{}

// discardLog keeps what client-go logs from the terminal: the command says what goes wrong, with what follows from it.
func discardLog(ctx context.Context) {
	if ctx.Value(ownProcess{}) != nil {
		klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	}
}

// NewCommand makes the command of kubectl-belay, with parts of the caller's own. Where the options can't be used, the command fails with an
// error that says so whatever its arguments are.
func NewCommand(options ...Option) *cobra.Command {
	return newCommand(os.Stdout, os.Stderr, options...)
}

// newCommand makes the command, which writes to out and errs.
func newCommand(out, errs io.Writer, options ...Option) *cobra.Command {
	a := &app{out: out, errs: errs}
	var own parts
	for _, add := range options {
		add(&own)
	}
	c := &cobra.Command{
		Use: "kubectl-belay", Short: "Run rollouts: status, why, plan, history, verbs and doctor", Long: long, Example: examples,
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl belay"},
		Version:      version.Get().GitVersion,
		SilenceUsage: true, SilenceErrors: true, Args: unknownCommand, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.Flags().Bool("version", false, "print the version and exit") // without cobra's shorthand: -v is for logs elsewhere
	c.SetOut(out)
	c.SetErr(errs)
	c.SetGlobalNormalizationFunc(cliflag.WordSepNormalizeFunc)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return drainsettings.ParseError(err) })
	c.CompletionOptions.DisableDefaultCmd, c.SuggestionsMinimumDistance = true, 2
	c.AddCommand(statusCommand(a), whyCommand(a), planCommand(a), historyCommand(a), doctorCommand(a))
	for _, do := range []rollout.Do{rollout.Pause, rollout.Resume, rollout.Abort, rollout.Promote, rollout.Accept, rollout.Acknowledge} {
		c.AddCommand(verbCommand(a, v1alpha1.Do(do)))
	}
	c.AddCommand(verbCommand(a, v1alpha1.DoRollback), installCommand(a))
	own.addTo(c)
	return own.problems.Command(c)
}

// unknownCommand refuses what is no command; cobra names those that are near.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("there is no command %q", args[0])
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; near are " + strings.Join(near, ", ")
	}
	return drainsettings.Usage(errors.New(text + "; see kubectl belay --help"))
}

// told is what a command line says.
type told interface {
	AddFlags(*pflag.FlagSet)
	Validate() error
}

// checked makes a command that acts if what it is told is valid. It takes least to most arguments, of which usage says what they are.
func checked(s told, least, most int, usage string, act func(ctx context.Context, args []string) error) *cobra.Command {
	c := &cobra.Command{Use: usage, RunE: func(c *cobra.Command, args []string) error {
		discardLog(c.Context())
		return act(c.Context(), args)
	}}
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return drainsettings.Usage(fmt.Errorf("want kubectl belay %s, got %d arguments: %q", usage, len(args), args))
		}
		return s.Validate()
	}
	c.Flags().SortFlags = false
	s.AddFlags(c.Flags())
	return c
}

// first is the first argument, or empty.
func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func statusCommand(a *app) *cobra.Command {
	var s settings.Status
	c := checked(&s, 0, 1, "status [ROLLOUT]", func(ctx context.Context, args []string) error { return a.status(ctx, &s, first(args)) })
	c.Short = "Say how far a rollout is, what waits, and why"
	c.Long = "Say how far a rollout is, what waits, and why: from the status that its controller has written.\n\n" +
		"With --watch it goes on until the rollout is completed (0) or does not go on by itself (3). On a terminal the report is drawn anew;\n" +
		"elsewhere each change is a line, with -o json one JSON document a line.\n\n" + exitCodes
	return c
}

func whyCommand(a *app) *cobra.Command {
	var s settings.Why
	c := checked(&s, 1, 1, "why NODE", func(ctx context.Context, args []string) error { return a.why(ctx, &s, args[0]) })
	c.Short = "Say why a node is where it is, what would change that, and how it came there"
	c.Long = c.Short + ".\n\nThe reason is the controller's word where its status has one, and else the decision that it would take now on the same objects.\n\n" + exitCodes
	return c
}

func planCommand(a *app) *cobra.Command {
	var s settings.Plan
	c := checked(&s, 0, 1, "plan [ROLLOUT]", func(ctx context.Context, args []string) error { return a.plan(ctx, &s, first(args)) })
	c.Short = "Play a rollout ahead: order, stages, time, what holds up whom, and what can break"
	c.Long = c.Short + ".\n\nIt is decided as a controller of the same flags decides, again and again, if from now on all goes well. Nothing is changed.\n\n" + exitCodes
	return c
}

func historyCommand(a *app) *cobra.Command {
	var s settings.History
	c := checked(&s, 0, 1, "history [ROLLOUT]", func(ctx context.Context, args []string) error { return a.history(ctx, &s, first(args)) })
	c.Short = "Say which revisions a rollout was about, and in what two of them differ"
	c.Long = c.Short + ".\n\n" + exitCodes
	return c
}

func doctorCommand(a *app) *cobra.Command {
	var s settings.Doctor
	c := checked(&s, 0, 0, "doctor", func(ctx context.Context, _ []string) error { return a.doctor(ctx, &s) })
	c.Short = "Say what keeps rollouts from working here, and what helps"
	c.Long = c.Short + ".\n\n" + exitCodes
	return c
}
