// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"fmt"
	"slices"

	"github.com/belayproject/belay/configsync"
)

// An Action is what a change of a field asks of the node.
type Action string

// The actions, from the weakest on. The empty Action is that of two configs that don't differ.
const (
	// Live is taken up by the running program.
	Live Action = "Live"
	// Reload is taken up by the program when it is told to.
	Reload Action = "Reload"
	// Restart needs a restart of the program. Pods go on.
	Restart Action = "Restart"
	// Drain needs the node to be drained before the restart.
	Drain Action = "Drain"
	// Forbid is not done to a node at all.
	Forbid Action = "Forbid"
)

// strength orders the actions; -1 is none of them.
func (a Action) strength() int {
	return slices.Index([]Action{"", Live, Reload, Restart, Drain, Forbid}, a)
}

// What a policy must say of itself.
const (
	apiVersion = "belay.dev/v1alpha1"
	kindName   = "FieldPolicy"
)

// maxRules is the most rules that a policy may have.
const maxRules = 1000

// A Rule is about one field and all below it.
type Rule struct {
	// Path of the field; see the package comment.
	Path string `json:"path"`
	// Action that a change asks for. Required.
	Action Action `json:"action"`
	// Pools of nodes that may make the change. Empty means all.
	Pools []string `json:"pools,omitempty"`
	// Why is told to those who are refused. One line.
	Why string `json:"why,omitempty"`
}

// A Policy says what the change of a field asks for. Make it with [Parse] or [New]. The zero Policy forbids every change.
type Policy struct {
	fallback Action
	root     branch
}

// document is the policy as it is written.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Default    Action `json:"default"`
	Rules      []Rule `json:"rules"`
}

// Parse reads a policy in YAML or JSON, strictly. The error names what is wrong and where.
func Parse(doc []byte) (*Policy, error) {
	raw, err := configsync.Gate(doc, configsync.GateLimits{})
	if err != nil {
		return nil, fmt.Errorf("field policy: %w", err)
	}
	var d document
	if err := configsync.DecodeStrict(raw, &d); err != nil {
		return nil, fmt.Errorf("field policy: %w", err)
	}
	switch {
	case d.APIVersion != apiVersion:
		return nil, fmt.Errorf("field policy: field %q must be %q", "apiVersion", apiVersion)
	case d.Kind != kindName:
		return nil, fmt.Errorf("field policy: field %q must be %q", "kind", kindName)
	}
	return New(d.Default, d.Rules)
}

// New makes a policy of rules, and of the action of all fields that no rule matches. The error names the rule that is wrong.
func New(fallback Action, rules []Rule) (*Policy, error) {
	p := &Policy{fallback: fallback}
	switch {
	case fallback.strength() < 1:
		return nil, fmt.Errorf("field policy: field %q must be %s", "default", actionWords)
	case len(rules) > maxRules:
		return nil, fmt.Errorf("field policy: it has %d rules, at most %d are taken", len(rules), maxRules)
	}
	for i, r := range rules {
		if err := p.add(r); err != nil {
			return nil, fmt.Errorf("field policy: rules[%d]: %w", i, err)
		}
	}
	return p, nil
}

const actionWords = "Live, Reload, Restart, Drain or Forbid"

func (p *Policy) add(r Rule) error {
	path, err := parsePath(r.Path)
	switch {
	case err != nil:
		return fmt.Errorf("path: %w", err)
	case r.Action.strength() < 1:
		return fmt.Errorf("path %q: action must be %s", r.Path, actionWords)
	case r.Action == Forbid && len(r.Pools) > 0:
		return fmt.Errorf("path %q: pools must be empty with Forbid: it is forbidden to all", r.Path)
	case slices.Contains(r.Pools, ""):
		return fmt.Errorf("path %q: pools must have names", r.Path)
	case len(r.Why) > 256:
		return fmt.Errorf("path %q: why must have at most 256 bytes", r.Path)
	}
	b := &p.root
	for _, e := range path {
		b = b.grow(e)
	}
	if b.rule != nil {
		return fmt.Errorf("path %q: there is a rule for it already", r.Path)
	}
	r.Pools = slices.Clone(r.Pools)
	b.rule = &r
	return nil
}

// A branch holds the rules by the elements of their paths.
type branch struct {
	rule *Rule
	next map[element]*branch
}

func (b *branch) grow(e element) *branch {
	if b.next == nil {
		b.next = map[element]*branch{}
	}
	if b.next[e] == nil {
		b.next[e] = &branch{}
	}
	return b.next[e]
}

// find gives the rule with the most elements that matches a path, and how many they are; nil and -1 where none does.
func (b *branch) find(path []element) (*Rule, int) {
	best, length := b.rule, -1
	if best != nil {
		length = 0
	}
	if len(path) == 0 {
		return best, length
	}
	for _, e := range []element{path[0], {item: path[0].item, star: true}} { // of two of one length the first counts
		if n := b.next[e]; n != nil {
			if r, more := n.find(path[1:]); r != nil && more+1 > length {
				best, length = r, more+1
			}
		}
	}
	return best, length
}
