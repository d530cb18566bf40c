// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"fmt"

	"github.com/belayproject/belay/rollout/protocol"
)

// An Updater brings one node to a revision. Every call ends with its context, and may be repeated: after a restart
// the agent does not know whether the one before has come to its end.
type Updater interface {
	// Observe says what the node runs. It changes nothing.
	Observe(ctx context.Context) (Observation, error)
	// Prepare fetches a revision ahead. It disrupts nothing on the node.
	Prepare(ctx context.Context, r protocol.Revision) error
	// Apply brings the node to the attempt's revision. It may reboot the node and never return; [ErrRebooting] says that
	// a reboot is under way. After any other return Observe decides what was achieved; the error is the reason that
	// people get to see. Calls with the same key have one effect.
	Apply(ctx context.Context, a Attempt) error
	// Verify says whether the node is well with the attempt's revision. An error is no answer: it neither counts as
	// health nor ends it.
	Verify(ctx context.Context, a Attempt) (Health, error)
	// Revert brings the node back to the attempt's revision, which it has run before. It is otherwise like Apply.
	// [ErrIrreversible] means that there is no way back, and that nothing was touched.
	Revert(ctx context.Context, a Attempt) error
}

// A Preflighter is an Updater that is asked before an attempt is committed. Nil means to go on, a [*DeclinedError]
// declines the attempt; after any other error it is asked again.
type Preflighter interface {
	Preflight(ctx context.Context, a Attempt) error
}

// A Disrupter is an Updater that knows how much a change disturbs its node. The answer is reported with the commit.
type Disrupter interface {
	Disruption(ctx context.Context, from, to protocol.Revision) (Disruption, error)
}

// A Disruption is how much of the node a change takes away.
type Disruption string

// Disruptions, from the least on. An empty one is not known, and stands for the worst.
const (
	DisruptionNone    Disruption = "None"
	DisruptionRestart Disruption = "Restart" // of the agent or the kubelet: pods go on
	DisruptionDrain   Disruption = "Drain"   // pods have to go
	DisruptionReboot  Disruption = "Reboot"
)

// An Attempt is one permission to change the node.
type Attempt struct {
	// Key names the attempt among all of this node, for as long as the node lives: letters, digits and hyphens. A
	// restart does not change it.
	Key string
	// Revision is what to bring the node to.
	Revision protocol.Revision
	// Revert: the node has run Revision before, and goes back to it.
	Revert bool
}

// An Observation is what a node runs.
type Observation struct {
	// Current is what the node runs, whole. It is empty if the node is between two revisions; what is not known is an
	// error.
	Current protocol.Revision `json:"current"`
	// Previous is what Revert would go back to, Staged what was fetched ahead. Either may be empty.
	Previous protocol.Revision `json:"previous"`
	Staged   protocol.Revision `json:"staged"`
	// Suspect is a revision of which the node finds out whether it is to blame for what happened. It may be Current, or
	// be left for another one, to be run again or given up by itself. An attempt to bring the node to it goes on
	// meanwhile. Empty if there is none.
	Suspect protocol.Revision `json:"suspect"`
	// BootID changes with each boot of the node, and with nothing else. It is not empty: see [BootID].
	BootID string `json:"bootID"`
	// CanRevert: there is a way back from Current.
	CanRevert bool `json:"canRevert"`
}

// Health is the answer of one check.
type Health struct {
	// Verdict is [NotYet] if it is empty.
	Verdict Verdict `json:"verdict"`
	// Reason is one word in the form of condition reasons, Message a sentence.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// A Verdict says whether a node is well.
type Verdict string

// Verdicts.
const (
	// NotYet: the node is coming up. It counts neither as health nor as failure.
	NotYet Verdict = "NotYet"
	// Pass: the node is well.
	Pass Verdict = "Pass"
	// Fail: it is not. The healthy time begins anew.
	Fail Verdict = "Fail"
)

var (
	// ErrRebooting means that a reboot is under way. The agent waits for another boot ID, as long as the call might have
	// taken.
	ErrRebooting = errors.New("the node is about to reboot")
	// ErrIrreversible means that there is no way back.
	ErrIrreversible = errors.New("there is no way back from what the node runs")
)

// A DeclinedError is the refusal of an attempt before anything was touched.
type DeclinedError struct {
	// Reason is one word in the form of condition reasons, Message a sentence. An empty Reason is "Declined".
	Reason, Message string
}

// Error implements error.
func (e *DeclinedError) Error() string {
	return fmt.Sprintf("the node declines the attempt: %s: %s", e.Reason, e.Message)
}
