// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/examples/internal/kubectl-belay/report"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/view"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A Model is all that the map shows. Fields of its JSON are the contract with page.js, which comes out of the same binary.
type Model struct {
	// Rollouts are all, by name.
	Rollouts map[string]Rollout `json:"rollouts"`
	// Nodes are the nodes of each rollout by name, and under "" those that are in none.
	Nodes map[string]map[string]Cell `json:"nodes"`
	// Meanings says of each reason in Nodes what it means.
	Meanings map[string]string `json:"meanings"`
}

// A Rollout is how far a rollout is.
type Rollout struct {
	Domain  string `json:"domain"`
	Phase   string `json:"phase"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Revision is what the nodes are brought to, Rollback the entry of the history that it is of, if somebody went back to it.
	Revision string `json:"revision,omitempty"`
	Rollback int64  `json:"rollbackTo,omitempty"`
	// Stages are the names of all stages in their order, Stage is the one under way.
	Stages []string              `json:"stages,omitempty"`
	Stage  *v1alpha1.StageStatus `json:"stage,omitempty"`
	// Counts are what the controller has counted last.
	Counts v1alpha1.RolloutCounts `json:"counts"`
	// ExpectedEnd is an estimate, WorstCase what a fatal revision can do.
	ExpectedEnd *metav1.Time     `json:"expectedEnd,omitempty"`
	WorstCase   string           `json:"worstCase,omitempty"`
	Waiting     []report.Waiting `json:"waiting,omitempty"`
	// Troubles are the conditions that are not as they should be.
	Troubles []string `json:"troubles,omitempty"`
	// Current, Completed, NeedsSomebody and Stands are those of [report.Status].
	Current       bool `json:"current"`
	Completed     bool `json:"completed"`
	NeedsSomebody bool `json:"needsSomebody"`
	Stands        bool `json:"stands"`
	// Commands are what somebody may ask for now.
	Commands []Command `json:"commands,omitempty"`
	// Error says why nothing can be decided: then no node is shown in it.
	Error string `json:"error,omitempty"`
}

// A Command is what somebody can type.
type Command struct {
	Line string `json:"line"`
	// Effect says what it does.
	Effect string `json:"effect,omitempty"`
}

// A Cell is a node on the map. Its JSON is an array of the fields in their order.
type Cell struct {
	Kind Kind
	// Stage is the number of the node's stage from 0 on, [NoStage], or [Passed].
	Stage int32
	// State is where the node stands, Reason why, in one word each.
	State, Reason string
	// Runs is the revision that the node runs, empty if that is not known.
	Runs string
}

// Stages of a [Cell] that have no number.
const (
	// NoStage is of nodes that are not selected.
	NoStage int32 = -1
	// Passed is a stage before the one under way, where several are: which one is remembered by nobody.
	Passed int32 = -2
)

// MarshalJSON implements [json.Marshaler].
func (c Cell) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{c.Kind, c.Stage, c.State, c.Reason, c.Runs})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Cell) UnmarshalJSON(raw []byte) error {
	var fields []json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("reading a cell: %w", err)
	}
	into := []any{&c.Kind, &c.Stage, &c.State, &c.Reason, &c.Runs}
	if len(fields) != len(into) {
		return fmt.Errorf("reading a cell: has %d fields, want %d", len(fields), len(into))
	}
	for i, f := range fields {
		if err := json.Unmarshal(f, into[i]); err != nil {
			return fmt.Errorf("reading field %d of a cell: %w", i, err)
		}
	}
	return nil
}

// Of is the model of what is seen. Pods and budgets are not looked at.
func Of(s *view.Seen) Model {
	b := builder{s: s, runs: runs(s), in: make(map[string]bool, len(s.Nodes)), m: Model{
		Rollouts: map[string]Rollout{}, Nodes: map[string]map[string]Cell{}, Meanings: map[string]string{},
	}}
	for i := range s.Rollouts {
		b.rollout(&s.Rollouts[i])
	}
	rest := map[string]Cell{}
	for _, n := range s.Nodes {
		if !b.in[n.Name] {
			rest[n.Name] = Cell{Kind: Outside, Stage: NoStage, Runs: b.runs[n.Name]}
		}
	}
	if len(rest) > 0 {
		b.m.Nodes[""] = rest
	}
	return b.m
}

// A builder puts a model together.
type builder struct {
	s    *view.Seen
	runs map[string]string // by node
	in   map[string]bool   // nodes that are in a rollout
	m    Model
}

func (b *builder) rollout(r *v1alpha1.Rollout) {
	status := report.StatusOf(r, b.s.Revision, b.s.Now)
	head := headOf(&status)
	v, err := b.s.Decide(r)
	if err != nil {
		head.Error = firstLine(err)
		b.m.Rollouts[r.Name] = head
		return
	}
	for _, s := range v.Policy.Stages {
		head.Stages = append(head.Stages, s.Name)
	}
	b.m.Rollouts[r.Name] = head
	turns := turnsOf(v)
	cells := make(map[string]Cell, len(v.Decisions.Nodes))
	for i := range v.Decisions.Nodes {
		d := &v.Decisions.Nodes[i]
		c := Cell{Kind: kindOf(v, d), Stage: turns.stage(d), State: string(d.State), Runs: b.runs[d.Node]}
		if d.Why != nil {
			c.Reason = string(d.Why.Reason)
			b.mean(d.Why.Reason)
		}
		cells[d.Node], b.in[d.Node] = c, true
	}
	if len(cells) > 0 {
		b.m.Nodes[r.Name] = cells
	}
}

func (b *builder) mean(r rollout.Reason) {
	if _, known := b.m.Meanings[string(r)]; !known {
		b.m.Meanings[string(r)], _ = view.Meaning(r)
	}
}

// runs are the revisions that nodes run, by node: the name, and where it is not the content of the Revision of that name, the digest besides.
func runs(s *view.Seen) map[string]string {
	all := make(map[string]string, len(s.Shadows))
	digests := make(map[string]string, len(s.Revisions))
	for i := range s.Revisions {
		digests[s.Revisions[i].Name] = s.Revisions[i].Spec.Digest
	}
	for i := range s.Shadows {
		current := s.Shadows[i].Status.Current
		if current == nil {
			continue
		}
		name := current.Name
		if want := digests[name]; want != "" && current.Digest != "" && want != current.Digest {
			name += "@" + brief(current.Digest)
		}
		all[s.Shadows[i].Name] = name
	}
	return all
}

// brief is enough of a digest to tell it from another one of the same name.
func brief(digest string) string {
	const enough = 8
	_, hex, found := strings.Cut(digest, ":")
	if !found {
		hex = digest
	}
	return hex[:min(enough, len(hex))]
}

// headOf is the rollout as its controller has described it.
func headOf(s *report.Status) Rollout {
	head := Rollout{
		Domain: s.Domain, Phase: s.Phase, Reason: s.Reason, Message: s.Message, Rollback: s.Rollback, Stage: s.Stage, Counts: s.Counts, Waiting: s.Waiting,
		Current: s.Current, Completed: s.Completed, NeedsSomebody: s.NeedsSomebody, Stands: s.Stands, Commands: commands(s.Rollout, s.Phase, s.Verbs, ""),
	}
	if s.Revision != nil {
		head.Revision = s.Revision.Name
	}
	if s.Back != nil {
		head.Commands = append(head.Commands, Command{
			Line: s.Back.Line(s.Rollout), Effect: fmt.Sprintf("the nodes go back to revision %s, entry %d of the history", s.Back.Revision, s.Back.Number),
		})
	}
	if !s.Completed {
		head.ExpectedEnd = s.ExpectedEnd
		if s.WorstCase != nil {
			head.WorstCase = s.WorstCase.Message
		}
	}
	for _, c := range s.Troubles() {
		head.Troubles = append(head.Troubles, fmt.Sprintf("%s is %s, %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return head
}

// commands are verbs as they are typed, but for a rollback. To acknowledge takes a node: without one it is left out.
func commands(name, phase string, verbs []string, node string) []Command {
	effects := map[string]string{}
	for _, rule := range rollout.Verbs() {
		if string(rule.In) == phase {
			effects[strings.ToLower(string(rule.Do))] = rule.Effect
		}
	}
	var all []Command
	for _, v := range verbs {
		if v == strings.ToLower(string(v1alpha1.DoRollback)) {
			continue
		}
		line := "kubectl belay " + v + " " + name
		if v == strings.ToLower(string(rollout.Acknowledge)) {
			if node == "" {
				continue
			}
			line += " " + node
		}
		all = append(all, Command{Line: line, Effect: effects[v]})
	}
	return all
}

// firstLine is enough of an error that may have many.
func firstLine(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	if more := len(lines) - 1; more > 0 {
		return fmt.Sprintf("%s (and %d more)", lines[0], more)
	}
	return lines[0]
}

// ErrNoNode says that there is no Node of a name.
var ErrNoNode = errors.New("there is no such node")

// A Story is what is known of a node.
type Story struct {
	report.Why
	// Commands are what somebody can ask for, or look at.
	Commands []Command `json:"commands"`
}

// StoryOf is the story of a node; [ErrNoNode] if there is none of that name, and of pods those of the node are enough.
func StoryOf(s *view.Seen, node string) (Story, error) {
	if s.Node(node) == nil {
		return Story{}, fmt.Errorf("telling of node %q: %w", node, ErrNoNode)
	}
	st := Story{Why: report.WhyOf(s, node, s.Rollouts), Commands: []Command{{Line: "kubectl belay why " + node, Effect: "the same in a terminal"}}}
	given := map[string]bool{}
	for _, in := range st.Rollouts {
		named := ""
		if st.Slot != nil && st.Slot.State != "" {
			named = node
		}
		for _, c := range commands(in.Rollout, in.Phase, in.Verbs, named) {
			if !given[c.Line] {
				given[c.Line] = true
				st.Commands = append(st.Commands, c)
			}
		}
	}
	return st, nil
}

// Names are the names of all nodes of a model, sorted, each once.
func (m Model) Names() []string {
	all := map[string]bool{}
	for _, nodes := range m.Nodes {
		for n := range nodes {
			all[n] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
