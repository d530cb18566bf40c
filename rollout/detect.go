// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
)

// A Bounded detector knows how many failures it takes. Of one that does not, [Bound] assumes that it never trips.
type Bounded interface {
	Detector
	// StopsAt is how many nodes have to fail, one after another, after that many have succeeded, until it trips; zero means that it does not,
	// whatever fails.
	StopsAt(succeeded, nodes int) int
}

// DefaultDetectors are those of a policy that names none: [CUSUM] with its default rates. It stops a revision that fails on every node at the fourth
// failure, and one that fails on 10 nodes in 100 at the sixth or seventh in the mean, whatever the size of the fleet. A good one, which
// fails on one node in 100, it stops in 3 of 1,000 rollouts over 1,000 nodes, and in 16 of 1,000 over 5,000. An empty list turns detection
// off.
func DefaultDetectors() []Detector { return []Detector{CUSUM{}} }

// detectWith returns the detectors of a policy.
func detectWith(detectors []Detector) []Detector {
	if detectors == nil {
		return DefaultDetectors()
	}
	return detectors
}

// detectFailed reports whether a result is a failure. A result that is not known is one.
func detectFailed(r Result) bool {
	switch r {
	case "", Succeeded, Refused, Deferred, Undone:
		return false
	}
	return true
}

// A detectTally counts outcomes up to the one at which a detector has tripped.
type detectTally struct {
	failed, attempted int
	// last is the node of the last failure, seen is how many outcomes were looked at.
	last string
	seen int
}

// add counts an outcome and reports whether it is an attempt: a failure or a success.
func (t *detectTally) add(o Outcome) (failed, attempted bool) {
	t.seen++
	failed = detectFailed(o.Result)
	attempted = failed || o.Result == Succeeded
	if failed {
		t.failed++
		t.last = o.Node
	}
	if attempted {
		t.attempted++
	}
	return failed, attempted
}

// Critical is a [Detector] that trips when one of some nodes fails. The zero Critical never trips.
type Critical struct {
	// Nodes are their names: whatever incarnation of such a node fails is critical.
	Nodes []string
}

// Name implements [Detector].
func (c Critical) Name() string { return "critical node" }

// Trips implements [Detector].
func (c Critical) Trips(outcomes []Outcome, _ int) (reason string, tripped bool) {
	for _, o := range outcomes {
		if detectFailed(o.Result) && slices.Contains(c.Nodes, o.Node) {
			return fmt.Sprintf("critical node %q: %s", o.Node, o.Result), true
		}
	}
	return "", false
}
