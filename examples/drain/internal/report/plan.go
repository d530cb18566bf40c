// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/belayproject/belay/drain"
)

// A Plan is a drain.Result in a form for programs.
type Plan struct {
	Nodes   []PlannedNode   `json:"nodes"`
	Budgets []PlannedBudget `json:"budgets,omitempty"`
	// Rounds is the least number of times that pods have to be replaced.
	Rounds int `json:"rounds"`
	// Blocked counts the pods that stay until somebody acts.
	Blocked int `json:"blocked"`
	// Preflight lists what keeps the drain from beginning.
	Preflight []Finding `json:"preflight,omitempty"`
	// Misfits lists pods whose replacement no node can take, by an estimate. They are no reason to stop.
	Misfits []Finding `json:"misfits,omitempty"`
}

// AddMisfits adds the pods whose replacement no node can take.
func (p *Plan) AddMisfits(found []drain.Finding) {
	for _, f := range found {
		p.Misfits = append(p.Misfits, Finding(f))
	}
}

// misfitLines tells of the misfits.
func (p Plan) misfitLines() []string {
	if len(p.Misfits) == 0 {
		return nil
	}
	pods := count(len(p.Misfits), "pod")
	lines := []string{"No node can take the replacement of " + pods + ", by an estimate; the drain doesn't wait for that:"}
	for _, f := range p.Misfits {
		lines = append(lines, fmt.Sprintf("  %s on %s: %s", f.PodRef, f.Node, reason(f.Reason, nil, f.Message)))
	}
	return append(lines, "")
}

// A Finding is a pod because of which a node is not even cordoned.
type Finding struct {
	Node         string `json:"node"`
	drain.PodRef `json:",inline"`
	Reason       drain.Reason `json:"reason"`
	Message      string       `json:"message,omitempty"`
}

// A PlannedNode is a node and what happens to its pods.
type PlannedNode struct {
	Node   string       `json:"node"`
	Counts drain.Counts `json:"counts"`
	Pods   []PlannedPod `json:"pods,omitempty"`
}

// A PlannedPod is what happens to a pod, and why.
type PlannedPod struct {
	drain.PodRef `json:",inline"`
	Action       drain.Action `json:"action"`
	Reason       drain.Reason `json:"reason,omitempty"`
	Message      string       `json:"message,omitempty"`
	Budgets      []string     `json:"budgets,omitempty"`
	Hook         string       `json:"hook,omitempty"`
	Tier         int32        `json:"tier,omitempty"`
	Step         drain.Step   `json:"step,omitempty"`
	Next         drain.Step   `json:"next,omitempty"`
	NextAt       time.Time    `json:"nextAt,omitzero"`
}

// A PlannedBudget is what a budget means for the nodes together.
type PlannedBudget struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Pods      int    `json:"pods"`
	Allowed   int    `json:"allowed"`
	Rounds    int    `json:"rounds,omitempty"`
	Never     bool   `json:"never,omitempty"`
}

// PlanOf takes over what the library decided.
func PlanOf(r drain.Result, found []drain.Finding) Plan {
	p := Plan{Rounds: r.Rounds}
	for _, f := range found {
		p.Preflight = append(p.Preflight, Finding(f))
	}
	for _, n := range r.Nodes {
		node := PlannedNode{Node: n.Node, Counts: n.Counts}
		for _, pod := range n.Pods {
			node.Pods = append(node.Pods, PlannedPod{
				PodRef: pod.PodRef, Action: pod.Action, Reason: pod.Reason, Message: pod.Message, Budgets: pod.Budgets, Hook: pod.Hook, Tier: pod.Tier,
				Step: pod.Step, Next: pod.Next, NextAt: pod.NextAt,
			})
			if stays(pod.Action, pod.Next) {
				p.Blocked++
			}
		}
		p.Nodes = append(p.Nodes, node)
	}
	for _, b := range r.Budgets {
		p.Budgets = append(p.Budgets, PlannedBudget{
			Namespace: b.Budget.Namespace, Name: b.Budget.Name, Pods: b.Pods, Allowed: b.Allowed, Rounds: b.Rounds, Never: b.Never,
		})
	}
	return p
}

// stays reports whether a pod is blocked and nothing is announced that would change it.
func stays(a drain.Action, next drain.Step) bool { return a == drain.Block && next == "" }

// JSON is the plan as a document.
func (p Plan) JSON() (string, error) { return document(p) }

func document(v any) (string, error) {
	raw, err := json.MarshalIndent(v, "", "  ")
	return string(raw) + "\n", err
}

// Text is the plan for people. Times are in the zone of now.
func (p Plan) Text(now time.Time) string {
	var lines []string
	for _, n := range p.Nodes {
		lines = append(lines, n.lines(now)...)
	}
	if len(p.Budgets) > 0 {
		rows := []string{row("BUDGET", "PODS", "ALLOWS NOW", "ROUNDS")}
		for _, b := range p.Budgets {
			rounds := fmt.Sprint(b.Rounds)
			if b.Never {
				rounds = "never allows"
			}
			rows = append(rows, row(b.Namespace+"/"+b.Name, fmt.Sprint(b.Pods), fmt.Sprint(b.Allowed), rounds))
		}
		lines = append(append(lines, columns(rows)...), "")
	}
	if len(p.Preflight) > 0 {
		lines = append(lines, fmt.Sprintf("The drain doesn't begin, and nothing is cordoned, because of %s:", count(len(p.Preflight), "pod")))
		for _, f := range p.Preflight {
			lines = append(lines, fmt.Sprintf("  %s on %s: %s", f.PodRef, f.Node, reason(f.Reason, nil, f.Message)))
		}
		lines = append(lines, "")
	}
	lines = append(lines, p.misfitLines()...)
	return text(append(lines, p.end()...))
}

// Stands reports whether something keeps the drain from its end until somebody acts.
func (p Plan) Stands() bool { return p.Blocked > 0 || len(p.Preflight) > 0 }

func (n PlannedNode) lines(now time.Time) []string {
	c := n.Counts
	lines := []string{fmt.Sprintf("Node %s: %s to leave, %d of them blocked; %s to stay", n.Node, count(c.Remaining, "pod"), c.Blocked, count(c.Skipped, "pod"))}
	if len(n.Pods) == 0 {
		return append(lines, "")
	}
	rows := []string{row("TIER", "POD", "ACTION", "REASON", "BUDGET", "NEXT", "WHY")}
	for _, p := range n.Pods {
		tier := fmt.Sprint(p.Tier)
		if p.Action == drain.Skip {
			tier = ""
		}
		rows = append(rows, row(tier, p.String(), p.act(), string(p.Reason), strings.Join(p.Budgets, ", "), next(p.Next, p.NextAt, now), advised(p.Message, p.Reason, p.Hook)))
	}
	return append(append(lines, columns(rows)...), "")
}

// act is the action, with the means where it isn't the usual one.
func (p PlannedPod) act() string {
	if p.Action == drain.Evict && p.Step != "" && p.Step != drain.StepEvict {
		return fmt.Sprintf("%s by %s", p.Action, p.Step)
	}
	return string(p.Action)
}

// end sums up.
func (p Plan) end() []string {
	leave := 0
	for _, n := range p.Nodes {
		leave += n.Counts.Remaining
	}
	if leave == 0 {
		return []string{"Nothing has to leave."}
	}
	lines := []string{fmt.Sprintf("%s on %s: at least %s, each of which waits for replacements to be ready.",
		count(leave, "pod"), count(len(p.Nodes), "node"), count(p.Rounds, "round"))}
	switch {
	case p.Blocked == 0 && len(p.Preflight) > 0:
		return lines
	case p.Blocked == 0:
		return append(lines, "Every pod can leave."+p.describeUnproven())
	}
	lines = append(lines, fmt.Sprintf("%s can't leave until somebody acts:", count(p.Blocked, "pod")))
	for _, n := range p.Nodes {
		for _, pod := range n.Pods {
			if stays(pod.Action, pod.Next) {
				lines = append(lines, fmt.Sprintf("  %s on %s: %s", pod.PodRef, n.Node, reason(pod.Reason, pod.Budgets, advised(pod.Message, pod.Reason, pod.Hook))))
			}
		}
	}
	return lines
}

// describeUnproven says of how many pods the server has not said that they may leave, and why of the first.
func (p Plan) describeUnproven() string {
	n, first := 0, ""
	for _, node := range p.Nodes {
		for _, pod := range node.Pods {
			if why, ok := strings.CutPrefix(pod.Message, "not proven: "); ok && pod.Action == drain.Evict {
				n, first = n+1, cmp.Or(first, why)
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" That is not proven of %s: %s", count(n, "pod"), first)
}

// reason is the word for it, the budgets and the sentence, as far as there are any.
func reason(r drain.Reason, budgets []string, message string) string {
	t := string(r)
	if len(budgets) > 0 {
		t += fmt.Sprintf(" (%s)", strings.Join(budgets, ", "))
	}
	message = oneLine(message)
	if t == "" || message == "" {
		return t + message
	}
	return t + ": " + message
}
