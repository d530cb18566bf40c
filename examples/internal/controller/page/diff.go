// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"maps"
	"reflect"
)

// A Change is what has changed between two models, as a merge patch of RFC 7396 down to rollouts and cells: what is nil is gone, what is
// absent has not changed.
type Change struct {
	Rollouts map[string]*Rollout         `json:"rollouts,omitempty"`
	Nodes    map[string]map[string]*Cell `json:"nodes,omitempty"`
	Meanings map[string]*string          `json:"meanings,omitempty"`
}

// Empty reports whether nothing has changed.
func (c Change) Empty() bool {
	return len(c.Rollouts) == 0 && len(c.Nodes) == 0 && len(c.Meanings) == 0
}

// Diff is what makes b of a.
func Diff(a, b Model) Change {
	c := Change{
		Rollouts: differ(a.Rollouts, b.Rollouts, func(x, y Rollout) bool { return reflect.DeepEqual(x, y) }),
		Meanings: differ(a.Meanings, b.Meanings, func(x, y string) bool { return x == y }),
	}
	for name, before := range a.Nodes {
		after, still := b.Nodes[name]
		if !still {
			c.nodes(name, nil)
			continue
		}
		if cells := differ(before, after, func(x, y Cell) bool { return x == y }); len(cells) > 0 {
			c.nodes(name, cells)
		}
	}
	for name, after := range b.Nodes {
		if _, known := a.Nodes[name]; !known {
			c.nodes(name, differ(nil, after, func(x, y Cell) bool { return x == y }))
		}
	}
	return c
}

// nodes notes what has changed among the nodes of a rollout; nil is that none is left.
func (c *Change) nodes(rollout string, cells map[string]*Cell) {
	if c.Nodes == nil {
		c.Nodes = map[string]map[string]*Cell{}
	}
	c.Nodes[rollout] = cells
}

// differ has what is other in b than in a, and nil for what is not in b.
func differ[T any](a, b map[string]T, same func(x, y T) bool) map[string]*T {
	var changed map[string]*T
	note := func(key string, value *T) {
		if changed == nil {
			changed = map[string]*T{}
		}
		changed[key] = value
	}
	for key := range a {
		if _, still := b[key]; !still {
			note(key, nil)
		}
	}
	for key, after := range b {
		if before, known := a[key]; !known || !same(before, after) {
			note(key, &after)
		}
	}
	return changed
}

// Apply is the model that a change makes of m, which stays as it is.
func (m Model) Apply(c Change) Model {
	next := Model{Rollouts: patched(m.Rollouts, c.Rollouts), Meanings: patched(m.Meanings, c.Meanings), Nodes: maps.Clone(m.Nodes)}
	if next.Nodes == nil {
		next.Nodes = map[string]map[string]Cell{}
	}
	for name, cells := range c.Nodes {
		if cells == nil {
			delete(next.Nodes, name)
			continue
		}
		next.Nodes[name] = patched(next.Nodes[name], cells)
	}
	return next
}

func patched[T any](a map[string]T, changed map[string]*T) map[string]T {
	next := maps.Clone(a)
	if next == nil {
		next = make(map[string]T, len(changed))
	}
	for key, value := range changed {
		if value == nil {
			delete(next, key)
			continue
		}
		next[key] = *value
	}
	return next
}
