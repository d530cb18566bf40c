// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belayproject/belay/configsync/internal/tree"
)

// A Change is one field in which two configs differ, and what the policy says of it.
type Change struct {
	// Path of the field.
	Path string
	// Action is that of the rule that counts, or the default.
	Action Action
	// Rule is the path of that rule; empty for the default.
	Rule string
	// Refused says why this node may not make the change; empty where it may.
	Refused string
}

// A Decision is what a policy says of the way from one config to another.
type Decision struct {
	// Changes are the fields that differ, maps in the order of their keys and lists in that of their places.
	Changes []Change
	// Action is the strongest one that a change asks for; Forbid where one is refused, empty where nothing differs.
	Action Action
}

// Decide compares two documents, in YAML or JSON, on a node of a pool. An empty document holds no field. pool may be empty: then rules that
// name pools refuse. The error says that a document can't be read, and which.
func (p *Policy) Decide(from, to []byte, pool string) (Decision, error) {
	a, err := read(from)
	if err != nil {
		return Decision{}, fmt.Errorf("field policy: the config before: %w", err)
	}
	b, err := read(to)
	if err != nil {
		return Decision{}, fmt.Errorf("field policy: the config after: %w", err)
	}
	var d Decision
	compare(nil, "", a, b, func(path []element, text string) {
		c := p.judge(path, text, pool)
		d.Changes = append(d.Changes, c)
		if action := c.asks(); action.strength() > d.Action.strength() {
			d.Action = action
		}
	})
	return d, nil
}

// judge says what the rule that counts for a path says to a node of a pool.
func (p *Policy) judge(path []element, text, pool string) Change {
	c := Change{Path: text, Action: p.fallback}
	r, _ := p.root.find(path)
	if r == nil {
		r = &Rule{}
		if c.Action == "" {
			c.Action = Forbid // the zero Policy
		}
	} else {
		c.Action, c.Rule = r.Action, r.Path
	}
	switch {
	case c.Action == Forbid:
		c.Refused = "must not be changed"
	case len(r.Pools) > 0 && pool == "":
		c.Refused = "must not be changed by a node without a pool"
	case len(r.Pools) > 0 && !slices.Contains(r.Pools, pool):
		c.Refused = fmt.Sprintf("must not be changed in pool %q", pool)
	}
	if c.Refused != "" && r.Why != "" {
		c.Refused += ": " + r.Why
	}
	return c
}

func (c Change) asks() Action {
	if c.Refused != "" {
		return Forbid
	}
	return c.Action
}

// A RefusedError says which fields a node may not change. It holds no value of a config.
type RefusedError struct {
	// Changes are those that are refused. There is one at least.
	Changes []Change
}

// maxNamed is how many fields an error names.
const maxNamed = 8

// Error names the first fields, and how many there are.
func (e *RefusedError) Error() string {
	var b strings.Builder
	b.WriteString("field policy: ")
	for i, c := range e.Changes {
		if i == maxNamed {
			fmt.Fprintf(&b, "; and %d more fields", len(e.Changes)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "field %s %s", c.Path, c.Refused)
	}
	return b.String()
}

// Err is a [*RefusedError] where a change is refused, and else nil.
func (d Decision) Err() error {
	refused := slices.DeleteFunc(slices.Clone(d.Changes), func(c Change) bool { return c.Refused == "" })
	if len(refused) == 0 {
		return nil
	}
	return &RefusedError{refused}
}

// Disruption is how much of the node the change takes, in the words of a rollout's agent: None, Restart or Drain. What is forbidden has no
// word.
func (d Decision) Disruption() string {
	switch d.Action {
	case "", Live:
		return "None"
	case Reload, Restart:
		return "Restart"
	case Drain:
		return "Drain"
	}
	return ""
}

// Class is that of a revision that makes the change: Intrusive where the node has to be drained first, else NonIntrusive. What is forbidden
// has none.
func (d Decision) Class() string {
	switch d.Action {
	case Drain:
		return "Intrusive"
	case Forbid:
		return ""
	}
	return "NonIntrusive"
}

// A Guard is a policy on a node of a pool: the ChangePolicy of package configsync.
type Guard struct {
	Policy *Policy
	// Pool of the node. Empty means that it is in none.
	Pool string
}

// Judge returns the [Decision.Disruption] of a change, or the error of [Policy.Decide] or [Decision.Err].
func (g Guard) Judge(from, to []byte) (disruption string, err error) {
	p := g.Policy
	if p == nil {
		p = &Policy{}
	}
	d, err := p.Decide(from, to, g.Pool)
	if err == nil {
		err = d.Err()
	}
	if err != nil {
		return "", err
	}
	return d.Disruption(), nil
}

// read gives the value of a document; one that says nothing is an empty map.
func read(doc []byte) (any, error) {
	if tree.Empty(doc) {
		return map[string]any{}, nil
	}
	return tree.Read(doc)
}

// A visitor is told each path in which two values differ.
type visitor func(path []element, text string)

// compare visits what differs in two values that are both there, in order: the ends that are in one of them only, or have another value.
func compare(path []element, text string, a, b any, visit visitor) {
	if len(path) > 0 && (isEnd(a) || isEnd(b)) {
		ended(path, text, a, b, visit)
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			compareMaps(path, text, x, y, visit)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			compareLists(path, text, x, y, visit)
			return
		}
	}
	ends(path, text, a, visit)
	ends(path, text, b, visit)
}

// ended compares two values of which one is an end at least.
func ended(path []element, text string, a, b any, visit visitor) {
	switch {
	case !isEnd(a):
		visit(path, text)
		ends(path, text, a, visit)
	case !isEnd(b):
		visit(path, text)
		ends(path, text, b, visit)
	case !same(a, b):
		visit(path, text)
	}
}

func compareMaps(path []element, text string, a, b map[string]any, visit visitor) {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		x, inA := a[k]
		y, inB := b[k]
		either(append(path, element{name: k}), Key(text, k), x, y, inA, inB, visit)
	}
}

func compareLists(path []element, text string, a, b []any, visit visitor) {
	for i := range max(len(a), len(b)) {
		var x, y any
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		either(append(path, element{item: true, at: i}), Place(text, i), x, y, i < len(a), i < len(b), visit)
	}
}

// either compares two values of which one may not be there.
func either(path []element, text string, a, b any, inA, inB bool, visit visitor) {
	switch {
	case inA && inB:
		compare(path, text, a, b, visit)
	case inA:
		ends(path, text, a, visit)
	default:
		ends(path, text, b, visit)
	}
}

// ends visits the values in which v ends.
func ends(path []element, text string, v any, visit visitor) {
	if isEnd(v) {
		visit(path, text)
		return
	}
	switch x := v.(type) {
	case map[string]any:
		compareMaps(path, text, x, nil, visit)
	case []any:
		compareLists(path, text, x, nil, visit)
	}
}

// isEnd reports whether nothing is below v.
func isEnd(v any) bool {
	switch x := v.(type) {
	case map[string]any:
		return len(x) == 0
	case []any:
		return len(x) == 0
	}
	return true
}

// same compares two ends.
func same(a, b any) bool {
	switch a.(type) {
	case map[string]any:
		_, ok := b.(map[string]any)
		return ok
	case []any:
		_, ok := b.([]any)
		return ok
	}
	if !isScalar(b) {
		return false
	}
	return a == b
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}
