// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

// Machine returns the machine of a reservation, as it is to be created. It shares nothing with the set.
func (s Set) Machine(r Reservation) Machine {
	m := Machine{
		Key:         Key{Namespace: s.Namespace, Name: r.Name},
		Labels:      maps.Clone(s.Spec.Template.Labels),
		Annotations: maps.Clone(s.Spec.Template.Annotations),
		Owner:       Owner{UID: s.UID, Name: s.Name},
		Spec:        s.Spec.Template.Spec.forOne(),
	}
	if r.Heir.Of != "" {
		m.Annotations = with(m.Annotations, replacementOfAnnotation, r.Heir.Of)
		m.Annotations[LineageAnnotation] = strconv.Itoa(r.Heir.Lineage)
	}
	return m
}

// forOne returns a copy for a new machine, without what belongs to one machine alone.
func (s Spec) forOne() Spec {
	s = s.clone()
	s.ProviderID, s.Adopt, s.Decommission, s.Paused = "", "", false, false
	return s
}

// clone returns a copy that shares nothing.
func (s Spec) clone() Spec {
	s.Config, s.ConfigSource = slices.Clone(s.Config), slices.Clone(s.ConfigSource)
	s.Roles, s.Deletion.Hooks = slices.Clone(s.Roles), slices.Clone(s.Deletion.Hooks)
	s.Versions.Other = maps.Clone(s.Versions.Other)
	s.Desired.Node = provider.NodeSettings{
		Labels:      maps.Clone(s.Desired.Node.Labels),
		Annotations: maps.Clone(s.Desired.Node.Annotations),
		Taints:      slices.Clone(s.Desired.Node.Taints),
	}
	return s
}

// with returns the map with one entry more.
func with(m map[string]string, key, value string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// Letters of names: no vowels, so that no words come about, and nothing that looks like something else.
const nameLetters = "bcdfghjkmnpqrstvwxz2456789"

// maxName keeps names of machines short enough for a label's value.
const maxName = 63

// childName returns base with a suffix of so many letters that depends on all of the parts.
func childName(base string, letters int, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	n := binary.BigEndian.Uint64(sum[:])
	suffix := make([]byte, letters)
	for i := range suffix {
		suffix[i] = nameLetters[n%uint64(len(nameLetters))]
		n /= uint64(len(nameLetters))
	}
	if room := maxName - letters - 1; len(base) > room {
		base = strings.TrimRight(base[:room], "-.")
	}
	return base + "-" + string(suffix)
}
