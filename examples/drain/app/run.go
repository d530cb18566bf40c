// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/drain/internal/report"
	"github.com/belayproject/belay/examples/internal/drain/settings"
)

// A task is a set of nodes to be brought somewhere, with progress and a summary.
type task struct {
	connection   *settings.Connection
	nodes        settings.Nodes
	json         bool
	quiet        bool // nothing is printed on standard output
	set          drain.Set
	limits       drain.SchedulerOptions
	responders   []string
	releaseAfter bool
	deletes      bool          // --disable-eviction
	overdue      time.Duration // --skip-wait-for-delete-timeout
	conditions   bool          // --node-conditions
}

// run does the task and prints how it ended.
func (a *app) run(ctx context.Context, t task) error {
	tell := a.tellerFor(t.json)
	running, end := a.watchSignals(ctx, tell)
	defer end()
	a.quietLog(t.connection)
	c, err := connect(running, t.connection, tell, t.needs(a.own.responders))
	if err != nil {
		return err
	}
	defer c.close()
	names, err := c.names(&t.nodes)
	if err != nil {
		return err
	}
	t.set.Groups = [][]string{names}
	if err := t.set.Validate(); err != nil {
		return settings.Usage(errors.New(flags.Replace(err.Error())))
	}
	tell.sees(c.cache, names, t.set.Request.Holder)
	if t.set.Request.Mode == drain.Release {
		tell.say(notes(c.cache, names, t.set.Request.Holder)...)
	}
	st, err := tell.follow(running, c, t.set)
	if err == nil && t.releaseAfter && codeOf(st) == exitDone {
		st, err = t.release(running, c, tell, st)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return wrong(err)
	}
	a.warnSkipped(c)
	return a.conclude(&t, st, err)
}

// warnSkipped names the pods that were not waited for.
func (a *app) warnSkipped(c *cluster) {
	if c.overdue == nil {
		return
	}
	for _, pod := range c.overdue.skippedPods() {
		fmt.Fprintf(a.errs, "drain: not waited for, and may still run: %s, which should have ended more than %s ago\n", pod,
			c.overdue.limit)
	}
}

// needs are what the task wants of the cluster.
func (t *task) needs(own map[string]drain.Responder) needs {
	n := needs{
		own: own, limits: t.limits, policy: t.set.Request.Policy, responders: t.responders,
		deletes: t.deletes, overdue: t.overdue, deadline: t.set.Request.Deadline,
		conditions: t.conditions,
	}
	if t.set.Request.Mode == drain.Release {
		n.release = t.set.Request.Holder
	}
	return n
}

// release gives drained nodes back; what is known of their drain stays in the status.
func (t *task) release(ctx context.Context, c *cluster, tell *teller, st drain.SetStatus) (drain.SetStatus, error) {
	set := t.set
	set.Request.Mode, set.Request.Policy = drain.Release, drain.Policy{Soak: t.set.Request.Policy.Soak}
	back, err := tell.follow(ctx, c, set)
	for i := range back.Nodes {
		st.Nodes[i].Phase, st.Nodes[i].Reason, st.Nodes[i].Message = back.Nodes[i].Phase, back.Nodes[i].Reason, back.Nodes[i].Message
	}
	return st, err
}

// conclude prints the end of a task and turns it into an exit code. err is that of a context which was cancelled, or nil.
func (a *app) conclude(t *task, st drain.SetStatus, err error) error {
	code, held := codeOf(st), report.Held(st)
	interrupted := err != nil && t.set.Request.Mode != drain.Release
	switch {
	case interrupted && len(held) > 0:
		code = exitError
	case interrupted:
		code = exitInterrupted
	}
	if t.quiet {
		return codedOf(code, err)
	}
	if err := a.print(t, report.Summary{Status: st, Interrupted: interrupted, Release: releaseLine(held, t.set.Request.Holder)}); err != nil {
		return fmt.Errorf("printing the end: %w", err)
	}
	return codedOf(code, err)
}

// codedOf is the error for an exit code; nil where all is done.
func codedOf(code int, err error) error {
	if code == exitDone {
		return nil
	}
	return &codedError{code: code, err: otherErrors(err)}
}

// print prints the end of a task in its format.
func (a *app) print(t *task, s report.Summary) error {
	text := s.Text(time.Now())
	if t.json {
		var err error
		if text, err = report.JSON(s.Status); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(a.out, text)
	return err
}

// otherErrors is what went wrong while nodes were given back, in the error of a run that was interrupted. Without
// anything it is nil.
func otherErrors(err error) error {
	return dropErrors(err, func(e error) bool { return errors.Is(e, context.Canceled) })
}

// dropErrors is what is left of a joined error without the parts that drop is true of. Of any other error nothing is
// left.
func dropErrors(err error, drop func(error) bool) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	return errors.Join(slices.DeleteFunc(slices.Clone(joined.Unwrap()), drop)...)
}

// codeOf is the exit code for a set that has come to its end.
func codeOf(s drain.SetStatus) int {
	code := exitDone
	for _, n := range s.Nodes {
		switch {
		case n.Outcome == drain.OutcomeFailed || n.Phase == drain.Failed:
			return exitError
		case n.Phase != drain.Drained && n.Phase != drain.Released && n.Phase != drain.HoldEnded:
			code = exitBlocked
		}
	}
	return code
}
