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
	WouldCollect CollectOutcome = "WouldCollect" // dry run
	Renewed      CollectOutcome = "Renewed"      // 409: another version is stored
	Gone         CollectOutcome = "Gone"         // 404
	Refused      CollectOutcome = "Refused"      // any other answer
)

// A Report is what a pass has done.
type Report struct {
	// Stale is set, and all else empty, if the view was not up to date or its mass-loss brake held.
	Stale bool
	// Leases are those that were due and dealt with, oldest first, at most MaxPerPass; Left is how many more were due.
	Leases []CollectedLease
	Left   int
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
			found = append(found, p)
		}
	}
	slices.SortStableFunc(found, func(a, b Peer) int { return cmp.Compare(b.Quiet, a.Quiet) })
	return found
}
