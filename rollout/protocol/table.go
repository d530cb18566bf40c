// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

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
	From  State
	Event Event
	// To are the states that can follow.
	To     []State
	Writer Writer
	// Writes is what is stored, by compare-and-swap.
	Writes string
	// Guard is the condition in words.
	Guard string
}

// Transitions is the table of the protocol: what it does not list cannot happen. What the mark of a slot says does not change the state.
func Transitions() []Transition {
	var all []Transition
	add := func(event Event, writer Writer, writes, guard string, froms []State, to ...State) {
		for _, from := range froms {
			targets := to
			if len(targets) == 0 {
				targets = []State{from}
			}
			all = append(all, Transition{From: from, Event: event, To: targets, Writer: writer, Writes: writes, Guard: guard})
		}
	}
	addAdmission(add)
	addAttempt(add)
	addTrouble(add)
	addEnd(add)
	return all
}

type addFunc func(event Event, writer Writer, writes, guard string, froms []State, to ...State)

// slotted are the states of a node that has a slot and whose agent has spoken.
func slotted() []State {
	return []State{
		Admitted, Granted, Revoked, Refused, Committed, Undoing, Undone, Proceeding, Applying, Verifying, Done, FailedClean, FailedBroken, Retrying,
	}
}

func addAdmission(add addFunc) {
	add(EventStage, Controller, "orders.stage", "the stage of the rollout allows to fetch ahead", []State{Resting}, Resting, Staged)
	add(EventStage, Controller, "orders.stage", "the stage of the rollout allows to fetch ahead", []State{Staged}, Resting)
	add(EventStage, Controller, "orders.stage", "the stage of the rollout allows to fetch ahead", append(slotted(), Lost, Unknown))
	add(EventStaged, Agent, "report.staged", "the revision is on the node, and nothing was disrupted", []State{Resting}, Resting, Staged)
	add(EventStaged, Agent, "report.staged", "the revision is on the node, and nothing was disrupted", append(slotted(), Lost))
	add(EventAdmit, Controller, "ledger: a slot, epoch + 1", "the ledger is open for the rollout, the node has no slot, every cap holds on the new ledger",
		[]State{Resting, Staged}, Admitted)
	add(EventGrant, Controller, "orders.grant, orders.revision", "the attempt is neither revoked, granted nor answered", []State{Admitted}, Granted)
	add(EventGrant, Controller, "orders.grant, orders.revision", "the attempt is neither revoked, granted nor answered", []State{Retrying, Unknown})
	add(EventRevoke, Controller, "orders.revoked", "the agent has not answered the attempt", []State{Admitted, Granted}, Revoked)
	add(EventRevoke, Controller, "orders.revoked", "the agent has not answered the attempt", []State{Retrying, Unknown})
}

func addAttempt(add addFunc) {
	add(EventCommit, Agent, "report.attempt, CAS on the shadow", "the grant is newer than the last answer and not revoked", []State{Granted, Retrying}, Committed)
	add(EventRefuse, Agent, "report.attempt, CAS on the shadow", "the grant is newer than the last answer and not revoked; nothing was touched", []State{Granted}, Refused)
	add(EventProceed, Controller, "orders.proceed", "the node is cordoned and empty, if its class asks for that", []State{Committed}, Proceeding)
	add(EventUndo, Controller, "orders.undo", "a deadline has passed, or the rollout is aborted", []State{Committed}, Undoing)
	add(EventUndone, Agent, "report.phase", "nothing was applied: a node that was broken before is so again", []State{Undoing}, Undone, FailedBroken)
	add(EventApply, Agent, "disk, then report.phase", "the intent and the boot ID are on the disk", []State{Proceeding}, Applying)
	add(EventApplied, Agent, "report.phase", "the node runs the revision", []State{Applying, FailedBroken}, Verifying)
	add(EventFellBack, Agent, "report.phase", "the node runs what it ran before", []State{Applying, Verifying, FailedBroken}, FailedClean)
	add(EventBroke, Agent, "report.phase", "the node runs neither well", []State{Applying, Verifying}, FailedBroken)
	add(EventVerified, Agent, "report.phase", "all checks have passed for the whole interval", []State{Verifying}, Done)
	// Where the node does not boot, the agent may leave out to report that it begins.
	add(EventApplied, Agent, "disk, then report.phase", "the intent was on the disk before anything was touched; the node runs the revision", []State{Proceeding}, Verifying)
	add(EventFellBack, Agent, "disk, then report.phase", "the intent was on the disk before anything was touched; the node runs what it ran before", []State{Proceeding}, FailedClean)
	add(EventBroke, Agent, "disk, then report.phase", "the intent was on the disk before anything was touched; the node runs neither well", []State{Proceeding}, FailedBroken)
	// Before a retried attempt is committed, the one before goes on to its end.
	add(EventUndone, Agent, "report.phase", "the attempt before: nothing was applied", []State{Retrying}, Retrying, Admitted, Granted, Revoked)
	add(EventApply, Agent, "disk, then report.phase", "the attempt before was told to proceed", []State{Retrying})
	add(EventApplied, Agent, "report.phase", "the attempt before: the node runs the revision", []State{Retrying})
	add(EventBroke, Agent, "report.phase", "the attempt before: the node runs neither well", []State{Retrying})
	add(EventFellBack, Agent, "report.phase", "the attempt before: the node runs what it ran before", []State{Retrying}, Admitted, Granted, Revoked)
	add(EventVerified, Agent, "report.phase", "the attempt before: all checks have passed", []State{Retrying}, Admitted, Granted, Revoked)
	// A node whose capacity was given up goes on likewise, outside the caps.
	for _, e := range []Event{EventApply, EventApplied, EventBroke} {
		add(e, Agent, "report.phase", "the capacity of the node was given up; its agent goes on", []State{Lost})
	}
	add(EventUndone, Agent, "report.phase", "the capacity of the node was given up; its agent gives the attempt up", []State{Lost}, Lost, Resting, Staged)
	for _, e := range []Event{EventFellBack, EventVerified} {
		add(e, Agent, "report.phase", "the capacity of the node was given up; its agent comes to an end", []State{Lost}, Resting, Staged)
	}
}

func addTrouble(add addFunc) {
	add(EventRecall, Agent, "report, from the disk", "the shadow is a new one", []State{Unknown},
		Resting, Staged, Admitted, Granted, Revoked, Refused, Undone, Applying, Verifying, Done, FailedClean, FailedBroken, Retrying, Lost)
	marked := append(slotted(), Unknown)
	add(EventSuspect, Controller, "ledger: the slot's state", "a deadline has passed by the controller's own clock", marked)
	add(EventBreak, Controller, "ledger: the slot's state", "the agent has said so, or the node's work did not come back", marked)
	add(EventQuarantine, Person, "ledger: the slot's state", "the failure is accepted", marked)
	add(EventRetry, Controller, "ledger: epoch + 1, the same slot", "the ledger is open for the rollout, the attempt before was revoked, or answered and not left waiting", []State{FailedBroken, Undoing, Proceeding, Applying, Verifying, Retrying}, Retrying)
	add(EventRetry, Controller, "ledger: epoch + 1, the same slot", "the ledger is open for the rollout, the attempt before was revoked, or answered and not left waiting", []State{Revoked, Refused, Undone, Done, FailedClean}, Admitted)
	add(EventRetry, Controller, "ledger: epoch + 1, the same slot", "the ledger is open for the rollout, the attempt before was revoked, or answered and not left waiting", []State{Unknown})
	add(EventRecreate, Controller, "shadow: a new one, revoked = the ledger's epoch", "the shadow was deleted; while the node is not at rest that takes a hand that removes its finalizer", slices.DeleteFunc(States(), func(s State) bool { return s == Gone }), Unknown)
}

func addEnd(add addFunc) {
	resting := []State{Revoked, Refused, Undone, Done, FailedClean}
	disrupted := []State{Committed, Undoing, Proceeding, Applying, Verifying, FailedBroken, Retrying}
	add(EventRelease, Controller, "ledger: no slot", "a version of the shadow shows it", resting, Resting, Staged)
	add(EventAcknowledge, Person, "ledger: no slot", "the slot is suspect or broken, and its capacity is given up", resting, Resting, Staged)
	add(EventAcknowledge, Person, "ledger: no slot", "the slot is suspect or broken, and its capacity is given up", disrupted, Lost)
	add(EventAcknowledge, Person, "ledger: no slot", "the slot is suspect or broken, and its capacity is given up", []State{Unknown})
	add(EventGone, Controller, "ledger: no slot", "the API server has no Node of that UID", append(slotted(), Unknown), Gone)
}
