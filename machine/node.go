// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/belayproject/belay/machine/provider"
)

// Given is what a Node was given by its machine, last. It is kept with the Node: what left the spec can be taken away by it, and what others have changed since is
// theirs.
type Given struct {
	provider.NodeSettings
	// Source is the digest of the config source; empty if there was none.
	Source string `json:"source,omitempty"`
	// Made are the settings that the provider knows the instance by, where they are other ones: its digest is of these.
	Made *provider.NodeSettings `json:"made,omitempty"`
}

// knownBy reports whether a machine with the settings that were given, or that its instance was made with, has that digest.
func (g Given) knownBy(d provider.Desired, digest string) bool {
	d.Node = g.NodeSettings
	if d.Digest() == digest {
		return true
	}
	if g.Made == nil {
		return false
	}
	d.Node = *g.Made
	return d.Digest() == digest
}

// GivenBy is what a machine gives to its Node.
func GivenBy(m Machine) Given {
	g := Given{NodeSettings: m.Spec.Node}
	if len(m.Spec.ConfigSource) > 0 {
		sum := sha256.Sum256(m.Spec.ConfigSource)
		g.Source = hex.EncodeToString(sum[:])
	}
	return g
}

// made are the settings that the provider knows the instance of m by, after g was given.
func (g Given) made(m Machine) *provider.NodeSettings {
	d := m.Spec.Desired
	if d.Node = g.NodeSettings; m.Instance != nil && m.Instance.Digest == d.Digest() {
		return &d.Node
	}
	return g.Made
}

// providers is the digest of what is the provider's alone.
func providers(d provider.Desired) string {
	d.Node = provider.NodeSettings{}
	return d.Digest()
}

// asked notes the digest of what the instance was asked to be, which is d, as far as that is known.
func (s *Status) asked(d provider.Desired, digest string) {
	if s.Digest, s.ProviderDigest = digest, ""; d.Digest() == digest {
		s.ProviderDigest = providers(d)
	}
}

// Equal reports whether both give the same.
func (g Given) Equal(other Given) bool {
	return maps.Equal(g.Labels, other.Labels) && maps.Equal(g.Annotations, other.Annotations) && slices.Equal(g.Taints, other.Taints) && g.Source == other.Source
}

// A NodeChange brings a Node to what its machine says. It has entries alone that the machine gives, or has given: all others are left as they are.
type NodeChange struct {
	// Labels and Annotations are set to their values; nil takes one away.
	Labels, Annotations map[string]*string
	// Drop are taken away where they are as they were given; then Taints are put on, in place of those with the same key and effect.
	Drop, Taints []provider.Taint
	// Point means that the config source is another one than was given, or is none any more.
	Point bool
	// Given is the record of it.
	Given Given
}

// Change is what a Node needs to be as m says, by the record of what it was given. What is the same in the record is not written again, whoever has
// changed it since.
func (n Node) Change(m Machine) NodeChange {
	var old Given
	if n.Given != nil {
		old = *n.Given
	}
	next := GivenBy(m)
	next.Made = old.made(m)
	c := NodeChange{
		Labels: changes(n.Labels, old.Labels, next.Labels), Annotations: changes(n.Annotations, old.Annotations, next.Annotations),
		Point: old.Source != next.Source, Given: next,
	}
	for _, t := range old.Taints {
		if !slices.ContainsFunc(next.Taints, func(o provider.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
			c.Drop = append(c.Drop, t)
		}
	}
	for _, t := range next.Taints {
		if !slices.Contains(old.Taints, t) {
			c.Taints = append(c.Taints, t)
		}
	}
	return c
}

// changes are the entries that differ between what was given and what is to be; nil takes away one that is still as it was given.
func changes(is, old, next map[string]string) map[string]*string {
	change := map[string]*string{}
	for k, v := range next {
		if was, given := old[k]; !given || was != v {
			change[k] = &v
		}
	}
	for k, v := range old {
		if _, stays := next[k]; !stays && is[k] == v {
			change[k] = nil
		}
	}
	return change
}

// starts reports whether a Node is to be given what its machine says: when it has come, and when that has changed since. What others change is theirs.
func (p *pass) starts(n Node) bool {
	m := p.Machine
	switch {
	case p.NodeStarted:
		return false
	case n.Uninitialized:
		return true
	case n.Given != nil:
		return !n.Given.Equal(GivenBy(m))
	case p.s.Step.Name == StepReady && p.s.Node != nil && p.s.Node.UID == n.UID && p.Machine.Observed == m.Generation:
		return false // there is no record: it had all of it when it came
	}
	want := m.Spec.Node
	for _, t := range want.Taints {
		if !slices.Contains(n.Taints, t) {
			return true
		}
	}
	return lacks(n.Labels, want.Labels) || lacks(n.Annotations, want.Annotations) || len(m.Spec.ConfigSource) > 0 && p.s.Step.Name != StepStarting
}

func lacks(is, want map[string]string) bool {
	for k, v := range want {
		if got, ok := is[k]; !ok || got != v {
			return true
		}
	}
	return false
}

// start gives the Node what its machine says. One that works goes on working.
func (p *pass) start() Action {
	if p.s.Step.Name != StepReady {
		p.step(StepStarting, "")
	}
	return Action{Kind: StartNode}
}

// settings carries out a change that is about the Node's settings alone: it needs nobody but the Node. That it is made is stored before, as the record on
// the Node shows what it was only until then.
func (p *pass) settings() (Decision, bool) {
	m, digest := p.Machine, p.Machine.Spec.Digest()
	if p.s.Update != nil || p.s.Digest == digest || !p.NodesKnown || len(p.Nodes) != 1 || p.Nodes[0].Given == nil {
		return Decision{}, false
	}
	given := p.Nodes[0].Given // may be of before the last edit: its write can have met a conflict, or the cache is behind it
	if p.s.ProviderDigest != providers(m.Spec.Desired) && !given.knownBy(m.Spec.Desired, p.s.Digest) {
		return Decision{}, false
	}
	p.s.asked(m.Spec.Desired, digest)
	if given.Equal(GivenBy(m)) {
		return Decision{}, false // it was given before its status was lost
	}
	return p.store(p.start()), true
}
