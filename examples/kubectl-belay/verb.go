// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/belayproject/belay/examples/kubectl-belay/cluster"
	"github.com/belayproject/belay/examples/kubectl-belay/report"
	"github.com/belayproject/belay/examples/kubectl-belay/settings"
	"github.com/belayproject/belay/examples/kubectl-belay/view"
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
		number, revision, err := report.EntryBefore(r)
		if err != nil {
			return err
		}
		v.Number = number
		a.notef("Going back to entry %d of the history, revision %s", number, revision)
	}
	if last := r.Spec.Verb; last != nil && last.Request != r.Status.HandledRequest {
		a.notef("This takes the place of %s (%s), which nobody has answered yet", last.Do, last.Request)
	}
	if err := c.Ask(ctx, r, v); err != nil {
		return err
	}
	return a.answer(ctx, c, s, r, v)
}

// answer waits for what comes of a request, and says it.
func (a *app) answer(ctx context.Context, c *cluster.Cluster, s *settings.Verb, before *v1alpha1.Rollout, v v1alpha1.Verb) error {
	wait, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	answer := report.AnswerOf(before, before, v, time.Now())
	err := c.Follow(wait, before.Name, func(r *v1alpha1.Rollout) bool {
		answer = report.AnswerOf(before, r, v, time.Now())
		return answer.Final
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s was asked for (%s), and what came of it can't be seen: %w", v.Do, v.Request, err)
	}
	if err := a.print(&s.Common, answer.Text(), answer); err != nil {
		return err
	}
	switch answer.Outcome {
	case report.Refused:
		return &codedError{code: exitRefused}
	case report.Unanswered, report.Displaced:
		return &codedError{code: exitUnanswered}
	}
	return nil
}
