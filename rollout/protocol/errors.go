// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
)

// ErrRefused is the parent of every refusal.
var ErrRefused = errors.New("the protocol does not allow it")

// An Error says which rule refused an event.
type Error struct {
	Event Event
	// Cap is the cap that would not hold, or nil where another rule refused.
	Cap     *Cap
	rule    rule
	message string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s (rule %s)", e.Event, e.message, e.rule) }

// Unwrap makes every refusal an [ErrRefused].
func (e *Error) Unwrap() error { return ErrRefused }

// A rule is a guard of the protocol.
type rule string

// The rules.
const (
	ruleClosed      rule = "Closed"      // the ledger is closed for the scope
	ruleOneSlot     rule = "OneSlot"     // a node has one slot at most
	ruleCap         rule = "Cap"         // every cap holds on every version of the ledger
	ruleSlot        rule = "Slot"        // there is no such slot
	ruleWorse       rule = "Worse"       // marks of a slot only get worse
	ruleBroken      rule = "Broken"      // only what is broken can be given up
	ruleUID         rule = "UID"         // the Node is another one of the same name
	ruleGrows       rule = "Grows"       // attempt numbers only grow
	ruleRevoked     rule = "Revoked"     // a revoked attempt stays revoked
	ruleRevision    rule = "Revision"    // a grant names its revision
	ruleUncommitted rule = "Uncommitted" // what the agent has answered cannot be revoked
	ruleCommitted   rule = "Committed"   // the agent has to commit first
	ruleOnce        rule = "Once"        // an attempt proceeds or is undone, once
	ruleOrdered     rule = "Ordered"     // the agent waits for the controller's word
	rulePhase       rule = "Phase"       // the attempt is not that far, or further
	ruleEnded       rule = "Ended"       // the attempt before has to end first
	ruleAtRest      rule = "AtRest"      // the node has to be at rest
	ruleAnswered    rule = "Answered"    // the attempt has to be answered or revoked
	ruleKnown       rule = "Known"       // the agent has to say first what it did before
	ruleField       rule = "Field"       // a field is missing or wrong
)

func refuse(event Event, rule rule, format string, args ...any) error {
	return &Error{Event: event, rule: rule, message: fmt.Sprintf(format, args...)}
}

func capMessage(node string, c Cap, used int) string {
	what := "nodes"
	if c.Key != "" {
		what = fmt.Sprintf("nodes of %q", c.Key)
	}
	from := ""
	if c.From != "" {
		from = " by " + c.From
	}
	return fmt.Sprintf("node %q has to wait: %d %s are away, the limit is %d%s", node, used, what, c.Max, from)
}
