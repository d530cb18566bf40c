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
	Rule  Rule
	// Cap is the cap that would not hold, for [RuleCap].
	Cap     Cap
	message string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s (rule %s)", e.Event, e.message, e.Rule) }

// Unwrap makes every refusal an [ErrRefused].
func (e *Error) Unwrap() error { return ErrRefused }

// A Rule is a guard of the protocol.
type Rule string

// Rules.
const (
	RuleClosed      Rule = "Closed"      // the ledger is closed for the scope
	RuleOneSlot     Rule = "OneSlot"     // a node has one slot at most
	RuleCap         Rule = "Cap"         // every cap holds on every version of the ledger
	RuleSlot        Rule = "Slot"        // there is no such slot
	RuleWorse       Rule = "Worse"       // marks of a slot only get worse
	RuleBroken      Rule = "Broken"      // only what is broken can be given up
	RuleUID         Rule = "UID"         // the Node is another one of the same name
	RuleGrows       Rule = "Grows"       // attempt numbers only grow
	RuleRevoked     Rule = "Revoked"     // a revoked attempt stays revoked
	RuleRevision    Rule = "Revision"    // a grant names its revision
	RuleUncommitted Rule = "Uncommitted" // what the agent has answered cannot be revoked
	RuleCommitted   Rule = "Committed"   // the agent has to commit first
	RuleOnce        Rule = "Once"        // an attempt proceeds or is undone, once
	RuleOrdered     Rule = "Ordered"     // the agent waits for the controller's word
	RulePhase       Rule = "Phase"       // the attempt is not that far, or further
	RuleEnded       Rule = "Ended"       // the attempt before has to end first
	RuleAtRest      Rule = "AtRest"      // the node has to be at rest
	RuleAnswered    Rule = "Answered"    // the attempt has to be answered or revoked
	RuleKnown       Rule = "Known"       // the agent has to say first what it did before
	RuleListed      Rule = "Listed"      // the table lists no such event for this state
	RuleField       Rule = "Field"       // a field is missing or wrong
)

func refuse(event Event, rule Rule, format string, args ...any) error {
	return &Error{Event: event, Rule: rule, message: fmt.Sprintf(format, args...)}
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
