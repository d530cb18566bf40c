// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// Outcome is what came of a request.
type Outcome string

// Outcomes.
const (
	CarriedOut Outcome = "CarriedOut"
	// Refused: nothing has changed, and the refusal says why.
	Refused Outcome = "Refused"
	// Unanswered: no controller has looked at it. It may be carried out later.
	Unanswered Outcome = "Unanswered"
	// Displaced: somebody else has asked for something, and whether this was carried out is not known.
	Displaced Outcome = "Displaced"
)

// Answer is what came of a verb.
type Answer struct {
	Verb    v1alpha1.Verb `json:"verb"`
	Outcome Outcome       `json:"outcome"`
	Refusal string        `json:"refusal,omitempty"`
	// Effect is what the verb does, by the table of verbs.
	Effect string `json:"effect,omitempty"`
	// Proven: of a pause and an abort, that no node begins any more, by what the ledger and every node have said.
	Proven bool   `json:"proven,omitempty"`
	Status Status `json:"status"`
	// Final: no more is to be waited for.
	Final bool `json:"-"`
}

// AnswerOf is what came of a request so far. Before is the rollout as it was when it was asked for.
func AnswerOf(before, r *v1alpha1.Rollout, v v1alpha1.Verb, now time.Time) Answer {
	a := Answer{Verb: v, Outcome: Unanswered, Status: StatusOf(r, nil, now)}
	for _, rule := range rollout.Verbs() {
		if v1alpha1.Do(rule.Do) == v.Do && string(rule.In) == string(before.Status.Phase) {
			a.Effect = rule.Effect
		}
	}
	switch handled := r.Status.HandledRequest == v.Request; {
	case handled && r.Status.Refusal != "":
		a.Outcome, a.Refusal, a.Final = Refused, r.Status.Refusal, true
	case handled:
		stops := v.Do == v1alpha1.Do(rollout.Pause) || v.Do == v1alpha1.Do(rollout.Abort)
		a.Outcome, a.Proven = CarriedOut, stops && r.Status.Acknowledged
		a.Final = !stops || a.Proven
	case r.Spec.Verb != nil && r.Spec.Verb.Request != v.Request && r.UID == before.UID && r.Generation > before.Generation:
		a.Outcome, a.Final = Displaced, true
	}
	return a
}

// Text is the report for people.
func (a Answer) Text() string { return strings.Join(page.Wrap(page.Width, a.lines()...), "\n") + "\n" }

func (a Answer) lines() []string {
	who := "Rollout " + a.Status.Rollout
	switch a.Outcome {
	case Refused:
		return []string{fmt.Sprintf("%s: %s was refused: %s", who, a.Verb.Do, a.Refusal)}
	case Displaced:
		return []string{fmt.Sprintf("%s: somebody else has asked for %s since; whether %s (%s) was carried out is not known", who, a.Status.Request.Do,
			a.Verb.Do, a.Verb.Request)}
	case Unanswered:
		return []string{fmt.Sprintf("%s: %s (%s) is not answered yet. It stays asked for, and may be carried out later: see \"kubectl belay doctor\"",
			who, a.Verb.Do, a.Verb.Request)}
	}
	lines := []string{fmt.Sprintf("%s: %s was carried out; it is %s", who, a.Verb.Do, a.Status.Phase)}
	if a.Effect != "" {
		lines = append(lines, "That means: "+a.Effect)
	}
	switch c := a.Status.Counts; {
	case a.Proven && c.InFlight > 0:
		lines = append(lines, fmt.Sprintf("Proven: no further node begins. %d still in flight", c.InFlight))
	case a.Proven:
		lines = append(lines, "Proven: no further node begins, and none is in flight")
	case !a.Final:
		lines = append(lines, "Not proven yet that no node begins any more: an agent has not answered; \"kubectl belay status\" shows when it is")
	}
	return lines
}
