// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/belayproject/belay/rollout/protocol"
)

// A Writer is who makes an event happen.
type Writer string

// Writers.
const (
	Controller Writer = "controller"
	Agent      Writer = "agent"
	Person     Writer = "person" // through the controller
)

// A Transition is one line of the table.
type Transition struct {
	From  protocol.State
	Event protocol.Event
	// To are the states that can follow.
	To     []protocol.State
	Writer Writer
	// Writes is what is stored, by compare-and-swap.
	Writes string
	// Guard is the condition in words.
	Guard string
}

// AllTransitions is the table of the protocol: what it does not list cannot happen. What the mark of a slot says
// does not change the state.
func AllTransitions() []Transition {
	var all []Transition
	add := func(event protocol.Event, writer Writer, writes, guard string, froms []protocol.State,
		to ...protocol.State) {
		for _, from := range froms {
			targets := to
			if len(targets) == 0 {
				targets = []protocol.State{from}
			}
			all = append(all, Transition{From: from, Event: event, To: targets, Writer: writer, Writes: writes,
				Guard: guard})
		}
	}
	addAdmission(add)
	addAttempt(add)
	addEarlierAttempt(add)
	addTrouble(add)
	addEnd(add)
	return all
}

type addFunc func(event protocol.Event, writer Writer, writes, guard string, froms []protocol.State,
	to ...protocol.State)

// slottedStates are the states of a node that has a slot and whose agent has spoken.
func slottedStates() []protocol.State {
	return []protocol.State{
		protocol.Admitted, protocol.Granted, protocol.Revoked, protocol.Refused, protocol.Committed,
		protocol.Undoing, protocol.Undone, protocol.Proceeding, protocol.Applying, protocol.Verifying,
		protocol.Done, protocol.FailedClean, protocol.FailedBroken, protocol.Retrying,
	}
}

func addAdmission(add addFunc) {
	add(protocol.EventStage, Controller, "orders.stage", "the stage of the rollout allows to fetch ahead",
		[]protocol.State{protocol.Resting}, protocol.Resting, protocol.Staged)
	add(protocol.EventStage, Controller, "orders.stage", "the stage of the rollout allows to fetch ahead",
		[]protocol.State{protocol.Staged}, protocol.Resting)
	add(protocol.EventStage, Controller, "orders.stage", "the stage of the rollout allows to fetch ahead",
		append(slottedStates(), protocol.Lost, protocol.Unknown))
	add(protocol.EventStaged, Agent, "report.staged", "the revision is on the node, and nothing was disrupted",
		[]protocol.State{protocol.Resting}, protocol.Resting, protocol.Staged)
	add(protocol.EventStaged, Agent, "report.staged", "the revision is on the node, and nothing was disrupted",
		append(slottedStates(), protocol.Lost))
	add(protocol.EventAdmit, Controller, "ledger: a slot, epoch + 1",
		"the ledger is open for the rollout, the node has no slot, every cap holds on the new ledger",
		[]protocol.State{protocol.Resting, protocol.Staged}, protocol.Admitted)
	add(protocol.EventGrant, Controller, "orders.grant, orders.revision",
		"the attempt is neither revoked, granted nor answered", []protocol.State{protocol.Admitted},
		protocol.Granted)
	add(protocol.EventGrant, Controller, "orders.grant, orders.revision",
		"the attempt is neither revoked, granted nor answered", []protocol.State{protocol.Retrying,
			protocol.Unknown})
	add(protocol.EventRevoke, Controller, "orders.revoked", "the agent has not answered the attempt",
		[]protocol.State{protocol.Admitted, protocol.Granted}, protocol.Revoked)
	add(protocol.EventRevoke, Controller, "orders.revoked", "the agent has not answered the attempt",
		[]protocol.State{protocol.Retrying, protocol.Unknown})
}

func addAttempt(add addFunc) {
	add(protocol.EventCommit, Agent, "report.attempt, CAS on the shadow",
		"the grant is newer than the last answer and not revoked", []protocol.State{protocol.Granted,
			protocol.Retrying}, protocol.Committed)
	add(protocol.EventRefuse, Agent, "report.attempt, CAS on the shadow",
		"the grant is newer than the last answer and not revoked; nothing was touched",
		[]protocol.State{protocol.Granted}, protocol.Refused)
	add(protocol.EventProceed, Controller, "orders.proceed",
		"the node is cordoned and empty, if its class asks for that", []protocol.State{protocol.Committed},
		protocol.Proceeding)
	add(protocol.EventUndo, Controller, "orders.undo", "a deadline has passed, or the rollout is aborted",
		[]protocol.State{protocol.Committed}, protocol.Undoing)
	add(protocol.EventUndone, Agent, "report.phase",
		"nothing was applied: a node that was broken before is so again", []protocol.State{protocol.Undoing},
		protocol.Undone, protocol.FailedBroken)
	add(protocol.EventApply, Agent, "disk, then report.phase", "the intent and the boot ID are on the disk",
		[]protocol.State{protocol.Proceeding}, protocol.Applying)
	add(protocol.EventApplied, Agent, "report.phase", "the node runs the revision",
		[]protocol.State{protocol.Applying, protocol.FailedBroken}, protocol.Verifying)
	add(protocol.EventFellBack, Agent, "report.phase", "the node runs what it ran before",
		[]protocol.State{protocol.Applying, protocol.Verifying, protocol.FailedBroken}, protocol.FailedClean)
	add(protocol.EventBroke, Agent, "report.phase", "the node runs neither well",
		[]protocol.State{protocol.Applying, protocol.Verifying}, protocol.FailedBroken)
	add(protocol.EventVerified, Agent, "report.phase", "all checks have passed for the whole interval",
		[]protocol.State{protocol.Verifying}, protocol.Done)
	// Where the node does not boot, the agent may leave out to report that it begins.
	add(protocol.EventApplied, Agent, "disk, then report.phase",
		"the intent was on the disk before anything was touched; the node runs the revision",
		[]protocol.State{protocol.Proceeding}, protocol.Verifying)
	add(protocol.EventFellBack, Agent, "disk, then report.phase",
		"the intent was on the disk before anything was touched; the node runs what it ran before",
		[]protocol.State{protocol.Proceeding}, protocol.FailedClean)
	add(protocol.EventBroke, Agent, "disk, then report.phase",
		"the intent was on the disk before anything was touched; the node runs neither well",
		[]protocol.State{protocol.Proceeding}, protocol.FailedBroken)
}

// addEarlierAttempt has what an attempt does that has lost its slot, or waits for the next attempt of its node.
func addEarlierAttempt(add addFunc) {
	// Before a retried attempt is committed, the one before goes on to its end.
	add(protocol.EventUndone, Agent, "report.phase", "the attempt before: nothing was applied",
		[]protocol.State{protocol.Retrying}, protocol.Retrying, protocol.Admitted, protocol.Granted,
		protocol.Revoked)
	add(protocol.EventApply, Agent, "disk, then report.phase", "the attempt before was told to proceed",
		[]protocol.State{protocol.Retrying})
	add(protocol.EventApplied, Agent, "report.phase", "the attempt before: the node runs the revision",
		[]protocol.State{protocol.Retrying})
	add(protocol.EventBroke, Agent, "report.phase", "the attempt before: the node runs neither well",
		[]protocol.State{protocol.Retrying})
	add(protocol.EventFellBack, Agent, "report.phase", "the attempt before: the node runs what it ran before",
		[]protocol.State{protocol.Retrying}, protocol.Admitted, protocol.Granted, protocol.Revoked)
	add(protocol.EventVerified, Agent, "report.phase", "the attempt before: all checks have passed",
		[]protocol.State{protocol.Retrying}, protocol.Admitted, protocol.Granted, protocol.Revoked)
	// A node whose capacity was given up goes on likewise, outside the caps.
	for _, e := range []protocol.Event{protocol.EventApply, protocol.EventApplied, protocol.EventBroke} {
		add(e, Agent, "report.phase", "the capacity of the node was given up; its agent goes on",
			[]protocol.State{protocol.Lost})
	}
	add(protocol.EventUndone, Agent, "report.phase",
		"the capacity of the node was given up; its agent gives the attempt up", []protocol.State{protocol.Lost},
		protocol.Lost, protocol.Resting, protocol.Staged)
	for _, e := range []protocol.Event{protocol.EventFellBack, protocol.EventVerified} {
		add(e, Agent, "report.phase", "the capacity of the node was given up; its agent comes to an end",
			[]protocol.State{protocol.Lost}, protocol.Resting, protocol.Staged)
	}
}

func addTrouble(add addFunc) {
	add(protocol.EventRecall, Agent, "report, from the disk", "the shadow is a new one",
		[]protocol.State{protocol.Unknown},
		protocol.Resting, protocol.Staged, protocol.Admitted, protocol.Granted, protocol.Revoked,
		protocol.Refused, protocol.Undone, protocol.Applying, protocol.Verifying, protocol.Done,
		protocol.FailedClean, protocol.FailedBroken, protocol.Retrying, protocol.Lost)
	marked := append(slottedStates(), protocol.Unknown)
	add(protocol.EventSuspect, Controller, "ledger: the slot's state",
		"a deadline has passed by the controller's own clock", marked)
	add(protocol.EventBreak, Controller, "ledger: the slot's state",
		"the agent has said so, or the node's work did not come back", marked)
	add(EventQuarantine, Person, "ledger: the slot's state", "the failure is accepted", marked)
	add(protocol.EventRetry, Controller, "ledger: epoch + 1, the same slot",
		"the ledger is open for the rollout, the attempt before was revoked, or answered and not left waiting",
		[]protocol.State{protocol.FailedBroken, protocol.Undoing, protocol.Proceeding, protocol.Applying,
			protocol.Verifying, protocol.Retrying}, protocol.Retrying)
	add(protocol.EventRetry, Controller, "ledger: epoch + 1, the same slot",
		"the ledger is open for the rollout, the attempt before was revoked, or answered and not left waiting",
		[]protocol.State{protocol.Revoked, protocol.Refused, protocol.Undone, protocol.Done,
			protocol.FailedClean}, protocol.Admitted)
	add(protocol.EventRetry, Controller, "ledger: epoch + 1, the same slot",
		"the ledger is open for the rollout, the attempt before was revoked, or answered and not left waiting",
		[]protocol.State{protocol.Unknown})
	add(EventRecreate, Controller, "shadow: a new one, revoked = the ledger's epoch",
		"the shadow was deleted; while the node is not idle that takes a hand that removes its finalizer",
		slices.DeleteFunc(protocol.States(), func(s protocol.State) bool { return s == protocol.Gone }),
		protocol.Unknown)
}

func addEnd(add addFunc) {
	resting := []protocol.State{protocol.Revoked, protocol.Refused, protocol.Undone, protocol.Done,
		protocol.FailedClean}
	disrupted := []protocol.State{protocol.Committed, protocol.Undoing, protocol.Proceeding, protocol.Applying,
		protocol.Verifying, protocol.FailedBroken, protocol.Retrying}
	add(protocol.EventRelease, Controller, "ledger: no slot", "a version of the shadow shows it", resting,
		protocol.Resting, protocol.Staged)
	add(EventAcknowledge, Person, "ledger: no slot",
		"the slot is suspect or broken, and its capacity is given up", resting, protocol.Resting, protocol.Staged)
	add(EventAcknowledge, Person, "ledger: no slot",
		"the slot is suspect or broken, and its capacity is given up", disrupted, protocol.Lost)
	add(EventAcknowledge, Person, "ledger: no slot",
		"the slot is suspect or broken, and its capacity is given up", []protocol.State{protocol.Unknown})
	add(protocol.EventGone, Controller, "ledger: no slot", "the API server has no Node of that UID",
		append(slottedStates(), protocol.Unknown), protocol.Gone)
}
