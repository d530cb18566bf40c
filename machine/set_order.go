// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
)

// A picker says which machines of a set go first. The deployment and its sets use the same, so that the one knows what the others will do.
type picker struct {
	order DeleteOrder
	cost  map[Key]float64
}

// Ranks of machines, in the order of their end.
const (
	rankMarked = iota
	rankNotJoined
	rankUnhealthy
	rankDisturbed
	rankNotYet
	rankWorking
)

func rank(s *standing) (rank int, why string) {
	_, marked := s.Annotations[DeleteAnnotation]
	switch {
	case marked:
		return rankMarked, "marked by " + DeleteAnnotation
	case s.Spec.Decommission:
		return rankMarked, "entered for decommission"
	case s.Node == nil:
		return rankNotJoined, "has not joined"
	case s.unhealthy():
		return rankUnhealthy, "does not work"
	case disturbed(s.Machine):
		return rankDisturbed, "is disturbed already"
	case s.known && !s.works():
		return rankNotYet, "does not work yet, or is to be disturbed"
	}
	return rankWorking, "surplus"
}

// pick returns the first n of the machines that may go, and those that would be among them if their reason did not forbid it.
func (p picker) pick(machines []standing, n int) (gone, kept []Choice) {
	sorted := p.sorted(machines)
	for _, s := range sorted {
		if len(gone) >= n {
			break
		}
		c := Choice{Key: s.Key, UID: s.UID, Version: s.Version}
		if c.Reason = keeps(&s, n >= len(sorted)); c.Reason != "" {
			kept = append(kept, c)
			continue
		}
		_, c.Reason = rank(&s)
		gone = append(gone, c)
	}
	return gone, kept
}

// queue returns the machines that may go, in the order of their end, and why one of the others may not.
func (p picker) queue(machines []standing) (queue []standing, kept string) {
	for _, s := range p.sorted(machines) {
		if why := keeps(&s, false); why == "" {
			queue = append(queue, s)
		} else if kept == "" {
			kept = s.Key.String() + " stays: " + why
		}
	}
	return queue, kept
}

// sorted returns the machines that are not being deleted, in the order of their end.
func (p picker) sorted(machines []standing) []standing {
	type ranked struct {
		standing
		rank int
		tie  [sha256.Size]byte
	}
	var all []ranked
	for _, s := range machines {
		if !s.deleting() {
			r, _ := rank(&s)
			all = append(all, ranked{s, r, sha256.Sum256([]byte(s.UID))})
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(
			cmp.Compare(a.rank, b.rank),
			cmp.Compare(p.cost[a.Key], p.cost[b.Key]),
			p.byAge(&a.standing, &b.standing),
			p.byChance(a.tie, b.tie),
			cmp.Compare(a.Name, b.Name),
		)
	})
	sorted := make([]standing, len(all))
	for i := range all {
		sorted[i] = all[i].standing
	}
	return sorted
}

func (p picker) byAge(a, b *standing) int {
	switch p.order {
	case OldestFirst:
		return a.Created.Compare(b.Created)
	case NewestFirst:
		return b.Created.Compare(a.Created)
	}
	return 0
}

func (p picker) byChance(a, b [sha256.Size]byte) int {
	if p.order == OldestFirst || p.order == NewestFirst {
		return 0
	}
	return bytes.Compare(a[:], b[:])
}

// keeps says why a machine must not be chosen; empty if it may. Of machines of which nothing is known none is chosen, as it may be the one that works,
// unless all have to go, or somebody has marked it.
func keeps(s *standing, all bool) string {
	_, quarantined := s.Annotations[QuarantineAnnotation]
	r, _ := rank(s)
	switch {
	case quarantined:
		return "kept by " + QuarantineAnnotation
	case s.Spec.Paused:
		return "paused"
	case Protected(s.Spec.Roles) && !s.Spec.Decommission:
		return "part of the control plane, and not entered by spec.decommission"
	case !s.known && r == rankWorking && !all:
		return "of unknown health, as its Node can't be asked"
	}
	return ""
}
