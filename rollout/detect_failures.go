// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Failures is a [Detector] that counts. The zero Failures trips with the first failure.
//
// A plain count is a blunt tool for a large fleet: a small number stops good revisions, and a percentage of all nodes lets many break before it
// stops a fatal one. [CUSUM] is the better default.
type Failures struct {
	// At is the number of failed nodes that stops the rollout: 2 means that the second one does. A percentage is rounded up; either is at least 1.
	At intstr.IntOrString
	// Of is what a percentage is of. It goes with a percentage, and only with that.
	Of Denominator
	// After is how many nodes have to be attempted before a percentage of them says anything; a rollout that has fewer nodes is judged at
	// its end. It goes with OfAttempted only. Zero means 1.
	After int
}

// A Denominator is what a percentage of failures is of.
type Denominator string

// Denominators.
const (
	// OfNodes: all nodes of the selection, whether they had their turn or not.
	OfNodes Denominator = "Nodes"
	// OfAttempted: the nodes that have succeeded or failed so far.
	OfAttempted Denominator = "Attempted"
)

// A failuresRule is what the settings mean for so many nodes.
type failuresRule struct {
	// limit is how many failures it takes, unless a percentage of at least 1 of the attempted nodes decides, once there are after of them.
	limit, percent, after int
}

// rule reads the settings. If they are wrong, the first failure decides.
func (f Failures) rule(nodes int) (failuresRule, error) {
	strict := failuresRule{limit: 1, after: 1}
	n, err := f.read()
	switch {
	case err != nil:
		return strict, err
	case f.Of == OfAttempted:
		return failuresRule{percent: max(1, n), after: max(1, min(f.After, nodes))}, nil
	case f.Of == OfNodes:
		n = (n*nodes + 99) / 100
	}
	return failuresRule{limit: max(1, n), after: 1}, nil
}

// Validate says what is wrong with the settings. With settings that are wrong the first failure trips the detector.
func (f Failures) Validate() error {
	_, err := f.read()
	return err
}

// read returns the count or the percentage, which has a denominator then.
func (f Failures) read() (n int, err error) {
	n, percent := f.At.IntValue(), f.At.Type == intstr.String
	if percent {
		if n, err = intstr.GetScaledValueFromIntOrPercent(&f.At, 100, true); err != nil {
			return 0, fmt.Errorf("detector failures: at: %w", err)
		}
	}
	switch {
	case n < 0 || percent && n > 100:
		return 0, fmt.Errorf("detector failures: at: %s is out of range, want a count or 0%% to 100%%", f.At.String())
	case percent && f.Of != OfNodes && f.Of != OfAttempted:
		return 0, fmt.Errorf("detector failures: of: %q, want %q or %q for %s", f.Of, OfNodes, OfAttempted, f.At.String())
	case !percent && f.Of != "":
		return 0, fmt.Errorf("detector failures: of: %q, want none for the count %d", f.Of, n)
	case f.After < 0 || f.After > 0 && f.Of != OfAttempted:
		return 0, fmt.Errorf("detector failures: after: %d, want at least 0, and 0 unless of is %q", f.After, OfAttempted)
	}
	return n, nil
}

// Name implements [Detector].
func (f Failures) Name() string {
	switch {
	case f.Validate() != nil:
		return "failures (invalid)"
	case f.Of == OfAttempted && f.After > 1:
		return fmt.Sprintf("failures of %s of the attempted nodes after %d", f.At.StrVal, f.After)
	case f.Of == OfAttempted:
		return fmt.Sprintf("failures of %s of the attempted nodes", f.At.StrVal)
	case f.Of == OfNodes:
		return fmt.Sprintf("failures of %s of the nodes", f.At.StrVal)
	}
	return fmt.Sprintf("failures of %d nodes", max(1, f.At.IntValue()))
}

// Trips implements [Detector].
func (f Failures) Trips(outcomes []Outcome, nodes int) (reason string, tripped bool) {
	t, tripped := f.first(outcomes, nodes)
	if !tripped {
		return "", false
	}
	r, err := f.rule(nodes)
	if err != nil {
		return fmt.Sprintf("node %q failed, and %v", t.last, err), true
	}
	if r.percent > 0 {
		return fmt.Sprintf("%d of %d attempted nodes failed, the limit is %s; the last was %q", t.failed, t.attempted, f.At.StrVal, t.last), true
	}
	return fmt.Sprintf("%d of %d nodes failed, the limit is %d (%s); the last was %q", t.failed, nodes, r.limit, f.At.String(), t.last), true
}

// first finds the outcome that trips it, so that it does not matter how many came in since somebody looked.
func (f Failures) first(outcomes []Outcome, nodes int) (detectTally, bool) {
	var t detectTally
	r, _ := f.rule(nodes)
	for _, o := range outcomes {
		if _, attempted := t.add(o); attempted && r.broken(t) {
			return t, true
		}
	}
	return t, false
}

// broken reports whether an attempt has broken the rule.
func (r failuresRule) broken(t detectTally) bool {
	if r.percent == 0 {
		return t.failed >= r.limit
	}
	return t.attempted >= r.after && 100*t.failed >= r.percent*t.attempted
}

// StopsAt implements [Bounded].
func (f Failures) StopsAt(succeeded, nodes int) int {
	r, _ := f.rule(nodes)
	switch {
	case r.percent == 0:
		return r.limit
	case r.percent == 100 && succeeded > 0:
		return 0
	case r.percent == 100:
		return r.after
	}
	success := 100 - r.percent
	share := (r.percent*succeeded + success - 1) / success
	return max(1, share, r.after-succeeded)
}
