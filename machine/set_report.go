// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"maps"
	"slices"
)

// clone returns a copy that shares nothing.
func (s SetStatus) clone() SetStatus {
	s.Reserved, s.Heirs = slices.Clone(s.Reserved), slices.Clone(s.Heirs)
	return s
}

// sameIntent compares what has to be stored before something is done.
func (s SetStatus) sameIntent(o SetStatus) bool {
	return slices.Equal(s.Reserved, o.Reserved) && slices.Equal(s.Heirs, o.Heirs) && s.Serial == o.Serial
}

func (s SetStatus) equal(o SetStatus) bool {
	return s.sameIntent(o) && s.Failure.equal(o.Failure) && s.counts() == o.counts() && s.Message == o.Message && s.Observed == o.Observed
}

func (s SetStatus) counts() [4]int { return [4]int{s.Replicas, s.Labeled, s.Ready, s.Available} }

func (f *Failure) equal(o *Failure) bool {
	if f == nil || o == nil {
		return f == o
	}
	return f.Reason == o.Reason && f.Message == o.Message && f.Since.Equal(o.Since)
}

// Unreferenced returns the machines that are not in a directory that was applied again: they are reported, and nothing else becomes of them. A
// machine ends only if somebody deletes it, and one of the control plane only if it was entered for that by spec.decommission. Machines of a set
// are its own concern.
func Unreferenced(live []Machine, directory []Machine) []Choice {
	named := map[Key]bool{}
	for _, m := range directory {
		named[m.Key] = true
	}
	missing := map[Key]Choice{}
	for _, m := range live {
		if !named[m.Key] && m.Owner == (Owner{}) && m.Deleted.IsZero() {
			missing[m.Key] = Choice{m.Key, m.UID, m.Version, unreferencedWords(m)}
		}
	}
	return slices.SortedFunc(maps.Values(missing), func(a, b Choice) int { return compareKeys(a.Key, b.Key) })
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func unreferencedWords(m Machine) string {
	if m.Spec.Decommission {
		return "not in the directory, and entered by spec.decommission: it can be deleted"
	}
	return "not in the directory, and not entered by spec.decommission: it goes on"
}
