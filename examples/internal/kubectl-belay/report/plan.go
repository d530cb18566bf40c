// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/page"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/rollout"
)

// Plan is how a rollout goes from now on, if all goes well.
type Plan struct {
	Rollout  string `json:"rollout"`
	Revision string `json:"revision"`
	Nodes    int    `json:"nodes"`
	Expected Course `json:"expected"`
	Worst    Course `json:"worst"`
	// Broken is how many nodes a fatal revision can break before the rollout stops by itself, and Bound says it in a sentence.
	Broken int          `json:"broken"`
	Bound  string       `json:"bound"`
	Stages []StagePlan  `json:"stages"`
	Order  []TurnPlan   `json:"order"`
	Waits  []WaitPlan   `json:"waits,omitempty"`
	Left   []LeftBehind `json:"left,omitempty"`
	At     metav1.Time  `json:"at"`
}

// Course is one way to go.
type Course struct {
	// Ending is one of rollout.Ending.
	Ending  string      `json:"ending"`
	End     metav1.Time `json:"end"`
	Seconds int64       `json:"seconds"`
	Phase   string      `json:"phase"`
	Reason  string      `json:"reason,omitempty"`
	Message string      `json:"message,omitempty"`
}

// StagePlan is one stage. Times are absent where it is not reached.
type StagePlan struct {
	Name     string       `json:"name"`
	Begin    *metav1.Time `json:"begin,omitempty"`
	End      *metav1.Time `json:"end,omitempty"`
	WorstEnd *metav1.Time `json:"worstEnd,omitempty"`
	// Turns is how many nodes are begun in it, Broken how many can be broken when it is over, after Failures that are seen, by Detector.
	Turns    int    `json:"turns"`
	Broken   int    `json:"broken"`
	Failures int    `json:"failures"`
	Detector string `json:"detector,omitempty"`
}

// TurnPlan is one attempt, as expected.
type TurnPlan struct {
	Node  string       `json:"node"`
	Stage string       `json:"stage,omitempty"`
	Begin metav1.Time  `json:"begin"`
	End   *metav1.Time `json:"end,omitempty"`
	Retry bool         `json:"retry,omitempty"`
}

// WaitPlan is what holds nodes up.
type WaitPlan struct {
	Reason  string `json:"reason"`
	Seconds int64  `json:"seconds"`
	Nodes   int    `json:"nodes"`
	Meaning string `json:"meaning"`
	Message string `json:"message,omitempty"`
}

// LeftBehind is a node that doesn't run the revision at the end.
type LeftBehind struct {
	Node    string `json:"node"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// PlanOf is the report on a simulation of the rollout.
func PlanOf(v *view.Rollout, s rollout.Simulation, now time.Time) Plan {
	p := Plan{
		Rollout: v.Object.Name, Revision: v.Policy.Target.Name, Nodes: s.Blast.Nodes, Expected: courseOf(s.Expected), Worst: courseOf(s.Worst),
		Broken: s.Blast.Broken, Bound: s.Blast.String(), At: metav1.NewTime(now.UTC().Truncate(time.Second)), Stages: []StagePlan{}, Order: []TurnPlan{},
	}
	for i, b := range s.Blast.Stages {
		stage := StagePlan{Name: b.Stage, Broken: b.Broken, Failures: b.Failures, Detector: b.Detector}
		if i < len(s.Expected.Stages) && i < len(s.Worst.Stages) {
			e := s.Expected.Stages[i]
			stage.Begin, stage.End, stage.WorstEnd, stage.Turns = stamp(e.Begin), stamp(e.End), stamp(s.Worst.Stages[i].End), e.Turns
		} else if len(v.Policy.Stages) == 0 {
			stage.Name, stage.Begin, stage.End, stage.WorstEnd = "all", stamp(s.Expected.Begin), stamp(s.Expected.End), stamp(s.Worst.End)
			stage.Turns = len(s.Expected.Turns)
		}
		p.Stages = append(p.Stages, stage)
	}
	for _, t := range s.Expected.Turns {
		turn := TurnPlan{Node: t.Node, Begin: *stampAt(t.Begin), End: stamp(t.End), Retry: t.Retry}
		if t.Stage >= 0 && t.Stage < len(v.Policy.Stages) {
			turn.Stage = v.Policy.Stages[t.Stage].Name
		}
		p.Order = append(p.Order, turn)
	}
	for _, w := range s.Expected.Waits {
		what, _ := view.Meaning(w.Reason)
		p.Waits = append(p.Waits, WaitPlan{Reason: string(w.Reason), Seconds: int64(w.For.Seconds()), Nodes: w.Nodes, Meaning: what, Message: w.Message})
	}
	for _, l := range s.Expected.Left {
		p.Left = append(p.Left, LeftBehind{Node: l.Node, Reason: string(l.Why.Reason), Message: l.Why.Message})
	}
	return p
}

func courseOf(c rollout.Course) Course {
	return Course{
		Ending: string(c.Ending), End: *stampAt(c.End), Seconds: int64(c.End.Sub(c.Begin).Seconds()), Phase: string(c.Phase), Reason: string(c.Reason),
		Message: c.Message,
	}
}

func stamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return stampAt(t)
}

func stampAt(t time.Time) *metav1.Time { return &metav1.Time{Time: t.UTC().Truncate(time.Second)} }

// Stands reports whether it does not come to its end by itself.
func (p Plan) Stands() bool { return p.Expected.Ending != string(rollout.EndCompleted) }

// orderShown is how many turns the text has, unless all are asked for; the middle is left out.
const orderShown = 20

// Text is the report for people, with all turns or only the first ones.
func (p Plan) Text(all bool) string {
	head := page.Table{}
	head.Factf("Rollout", "%s to %s, from %s on, if all goes well", p.Rollout, p.Revision, p.At.UTC().Format("2006-01-02 15:04:05Z"))
	head.Fact("Expected", p.course(p.Expected))
	head.Fact("Worst", p.course(p.Worst))
	head.Fact("At most broken", p.Bound)
	return head.String() + p.stages() + p.waits() + p.left() + p.order(all)
}

func (p Plan) course(c Course) string {
	took := page.Took(time.Duration(c.Seconds) * time.Second)
	end := c.End.UTC().Format("2006-01-02 15:04:05Z")
	switch rollout.Ending(c.Ending) {
	case rollout.EndCompleted:
		return fmt.Sprintf("completed in %s, at %s", took, end)
	case rollout.EndStalled:
		when := "at once"
		if c.Seconds > 0 {
			when = fmt.Sprintf("after %s, at %s", took, end)
		}
		if c.Reason != "" {
			when += ", for " + c.Reason
		}
		return fmt.Sprintf("comes to a stand %s: %s", when, c.Message)
	}
	return fmt.Sprintf("not over at %s, which is as far as was looked (%s): %s", end, c.Ending, c.Message)
}

func (p Plan) stages() string {
	t := page.Table{}
	t.Row("STAGE", "BEGINS", "ENDS", "ENDS AT WORST", "TURNS", "CAN BREAK", "FAILURES SEEN", "STOPPED BY")
	for _, s := range p.Stages {
		t.Row(s.Name, p.in(s.Begin), p.in(s.End), p.in(s.WorstEnd), fmt.Sprint(s.Turns), fmt.Sprint(s.Broken), fmt.Sprint(s.Failures), orDash(s.Detector))
	}
	return "\n" + t.String()
}

// in is how long after the beginning something is.
func (p Plan) in(t *metav1.Time) string {
	switch {
	case t == nil:
		return "-"
	case !t.After(p.At.Time):
		return "now"
	}
	return "+" + page.Took(t.Sub(p.At.Time))
}

func (p Plan) waits() string {
	if len(p.Waits) == 0 {
		return ""
	}
	t := page.Table{}
	t.Row("HELD UP BY", "FOR", "NODES", "WHICH MEANS")
	for _, w := range p.Waits {
		t.Row(w.Reason, page.Took(time.Duration(w.Seconds)*time.Second), fmt.Sprint(w.Nodes), w.Meaning+": "+w.Message)
	}
	return "\n" + t.String()
}

func (p Plan) left() string {
	if len(p.Left) == 0 {
		return ""
	}
	t := page.Table{}
	t.Row("LEFT AT THE END", "NODES", "WHICH ARE", "MESSAGE")
	groups := map[LeftBehind][]string{}
	var order []LeftBehind
	for _, l := range p.Left {
		key := LeftBehind{Reason: l.Reason, Message: l.Message}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], l.Node)
	}
	for _, key := range order {
		t.Row(key.Reason, fmt.Sprint(len(groups[key])), some(groups[key]), key.Message)
	}
	return "\n" + t.String()
}

func (p Plan) order(all bool) string {
	if len(p.Order) == 0 {
		return ""
	}
	t := page.Table{}
	t.Row("TURN", "NODE", "STAGE", "BEGINS", "ENDS")
	for i, turn := range p.Order {
		if i == orderShown && !all {
			break
		}
		t.Row(fmt.Sprint(i+1), turn.Node, orDash(turn.Stage), p.in(&turn.Begin), p.in(turn.End))
	}
	text := "\n" + t.String()
	if more := len(p.Order) - orderShown; more > 0 && !all {
		text += fmt.Sprintf("and %d more: --all shows them\n", more)
	}
	return text
}
