// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// CollectOutcome is what came of a Lease that was due.
type CollectOutcome string

// The outcomes.
const (
	Collected    CollectOutcome = "Collected"
	Finalizing   CollectOutcome = "Finalizing"   // deleted but for its finalizers, which others have to remove
	WouldCollect CollectOutcome = "WouldCollect" // dry run
	Renewed      CollectOutcome = "Renewed"      // 409: another version is stored
	Gone         CollectOutcome = "Gone"         // 404
	Refused      CollectOutcome = "Refused"      // any other answer
)

// A Report is what a pass has done.
type Report struct {
	// Stale is set, and all else empty, if the view was not up to date or its mass-loss brake held.
	Stale bool
	// Leases are those that were due and dealt with, at most MaxPerPass: first those that no pass has tried yet in this version, oldest first.
	// Left is how many more were due.
	Leases []CollectedLease
	Left   int
	// Kept is how many were due but have an epoch that is ahead of the server's versions, as after a move to another cluster. Such a Lease
	// alone knows how far the epochs of its name are: a member that is back would begin below them. Who is sure that no member of the
	// name will be, or that nobody remembers its epochs, deletes it by hand.
	Kept int
}

// A CollectedLease is one that was due.
type CollectedLease struct {
	Key     types.NamespacedName
	UID     types.UID
	Holder  string
	Quiet   time.Duration
	Outcome CollectOutcome
	// Err is the answer, if it was Refused.
	Err error
}

// due returns those of a view's peers whose Leases are to be deleted, the longest quiet first: lost, quiet for gcAfter, in the namespace of
// the canary, and not its own.
func due(peers []Peer, canary types.NamespacedName, gcAfter time.Duration) []Peer {
	var found []Peer
	for _, p := range peers {
		if p.State == Lost && p.Quiet >= gcAfter && p.Key.Namespace == canary.Namespace && p.Key != canary {
			if p.Lease.DeletionTimestamp != nil {
				continue // it is deleted but for its finalizers
			}
			found = append(found, p)
		}
	}
	slices.SortStableFunc(found, func(a, b Peer) int { return cmp.Compare(b.Quiet, a.Quiet) })
	return found
}

// spare returns the peers whose epoch their Lease is not needed for, and the number of the others. A Member spares the same at its release.
func spare(peers []Peer) (rest []Peer, kept int) {
	for _, p := range peers {
		version, err := versionOf(p.Lease)
		if epoch := epochOf(p.Lease); epoch != 0 && (err != nil || version < epoch) {
			kept++
			continue
		}
		rest = append(rest, p)
	}
	return rest, kept
}

// A try names what was tried: one version of one Lease.
type try struct {
	uid     types.UID
	version string
}

func tryOf(p Peer) try { return try{p.Lease.UID, p.Lease.ResourceVersion} }

// tries are the passes in which those that are still due were tried last, from 1 on.
type tries map[try]uint64

// turn puts those first that no pass has tried, and then those whose last try is longest ago. It forgets those that are not due any more, and
// returns the number of the pass to come.
func (c *Collector) turn(due []Peer) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, still := uint64(1), tries{}
	for _, p := range due {
		if last, ok := c.tries[tryOf(p)]; ok {
			still[tryOf(p)] = last
			next = max(next, last+1)
		}
	}
	slices.SortStableFunc(due, func(a, b Peer) int { return cmp.Compare(still[tryOf(a)], still[tryOf(b)]) })
	c.tries = still
	return next
}

// tried takes note of a try.
func (c *Collector) tried(p Peer, pass uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries[tryOf(p)] = pass
}
