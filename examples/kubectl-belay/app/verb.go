// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/report"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/cluster"
	"github.com/belayproject/belay/examples/kubectl-belay/internal/settings"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// shorts say what the verbs are for.
func shorts(do v1alpha1.Do) string {
	switch rollout.Do(do) {
	case rollout.Pause:
		return "Begin no more nodes; those under way end"
	case rollout.Resume:
		return "Go on after a pause or an abort"
	case rollout.Abort:
		return "Begin no more nodes, and take back what has not begun to apply"
	case rollout.Promote:
		return "Pass the stage without the rest of its soak, its gate and its approval"
	case rollout.Accept:
		return "Accept the failures that froze the rollout, and go on"
	case rollout.Acknowledge:
		return "Give up the capacity of a broken node, so that its slot is free"
	}
	return "Bring the nodes back to what an entry of the history names"
}

func verbCommand(a *app, do v1alpha1.Do) *cobra.Command {
	s := settings.Verb{Do: do}
	word := strings.ToLower(string(do))
	usage, least, most := word+" [ROLLOUT]", 0, 1
	if rollout.Do(do) == rollout.Acknowledge {
		usage, least, most = word+" ROLLOUT NODE", 2, 2
	}
	c := checked(&s, least, most, usage, func(ctx context.Context, args []string) error {
		if least == 2 {
			s.Node = args[1]
		}
		return a.verb(ctx, &s, first(args))
	})
	c.Short = shorts(do)
	c.Long = c.Short + ".\n\n"
	for _, rule := range rollout.Verbs() {
		if v1alpha1.Do(rule.Do) == do {
			c.Long += fmt.Sprintf("When it is %s: %s.\n", rule.In, rule.Effect)
		}
	}
	if do == v1alpha1.DoRollback {
		c.Long += "The spec is not followed until it names another revision. What is paused or aborted stays so until it is resumed.\n"
	}
	c.Long += "\n" + exitCodes
	return c
}

func (a *app) verb(ctx context.Context, s *settings.Verb, name string) error {
	c, err := cluster.Connect(s.Cluster)
	if err != nil {
		return err
	}
	all, err := c.Rollouts(ctx)
	if err != nil {
		return err
	}
	r, err := view.Pick(all, name)
	if err != nil {
		return err
	}
	v := v1alpha1.Verb{Request: strings.ToLower(string(s.Do)) + "-" + string(uuid.NewUUID()), Do: s.Do, Node: s.Node, Number: s.To}
	if s.Do == v1alpha1.DoRollback && v.Number == 0 {
		revisions, err := revisionsOf(ctx, c)
		if err != nil {
			return err
		}
		back, err := report.BackOf(r, revisions)
		if err != nil {
			return err
		}
		v.Number = back.Number
		a.notef("Going back to entry %d of the history, revision %s", back.Number, back.Revision)
	}
	if last := r.Spec.Verb; last != nil && last.Request != r.Status.HandledRequest {
		if stops(v.Do) < stops(last.Do) && !s.Displace {
			return fmt.Errorf("%s (%s) was asked for and nobody has answered it yet: %s would take its place, and it would never be carried out; "+
				"nothing was asked for: wait for it, or give --displace", last.Do, last.Request, v.Do)
		}
		a.notef("This takes the place of %s (%s), which nobody has answered yet", last.Do, last.Request)
	}
	if err := c.Ask(ctx, r, v); err != nil {
		return err
	}
	return a.answer(ctx, c, s, r, v)
}

// stops is how much a verb stops: what stops more may take the place of what stops less before that is answered, and not the other way about.
func stops(do v1alpha1.Do) int {
	switch rollout.Do(do) {
	case rollout.Abort:
		return 2
	case rollout.Pause:
		return 1
	}
	return 0
}

// answer waits for what comes of a request, and says it.
func (a *app) answer(ctx context.Context, c *cluster.Cluster, s *settings.Verb, before *v1alpha1.Rollout, v v1alpha1.Verb) error {
	wait, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	answer := report.AnswerOf(before, before, v, time.Now())
	eye := &sight{a: a, last: time.Now()}
	err := c.Follow(wait, before.Name, func(r *v1alpha1.Rollout) bool {
		eye.seen()
		answer = report.AnswerOf(before, r, v, time.Now())
		return answer.Final
	}, eye.away)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s was asked for (%s), and what came of it can't be seen: %w", v.Do, v.Request, err)
	}
	if err := a.print(&s.Common, answer.Text(), answer); err != nil {
		return err
	}
	if code := codeOf(answer); code != exitDone {
		return &codedError{code: code}
	}
	return nil
}

// codeOf is the exit code that an answer means. A stop that is not proven is none yet.
func codeOf(a report.Answer) int {
	switch {
	case a.Outcome == report.Refused:
		return exitRefused
	case a.Outcome != report.CarriedOut, !a.Final:
		return exitUnanswered
	}
	return exitDone
}
