// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

// sayings is what each reason means.
func sayings(r Reason) saying {
	for _, say := range []func(Reason) (saying, bool){sayTurn, sayStage, sayFleet, sayNode, sayFailure, sayStop} {
		if s, ok := say(r); ok {
			return s
		}
	}
	return saying{what: "it waits for a reason that has no description: " + string(r), change: "The detail says what is known"}
}

// sayTurn is of nodes that are touched, or need not be.
func sayTurn(r Reason) (saying, bool) {
	switch r {
	case ReasonUpToDate:
		return saying{what: "it runs the revision that it should run", change: "Nothing is left to be done"}, true
	case reasonNextInOrder:
		return saying{what: "it has its turn now", change: "It goes on by itself", verbs: []Do{Pause, Abort}}, true
	case ReasonInFlight:
		return saying{
			what:   "its update is under way",
			change: "It goes on by itself; if it does not come to an end by its deadline, it counts as failed", verbs: []Do{Abort},
		}, true
	case ReasonLeaving:
		return saying{what: "it is not selected any more, and its update is taken back", change: "It is given back by itself, or can be selected again"}, true
	case reasonSuperseded:
		return saying{what: "the update that it was given is not wanted any more, and is taken back", change: "It gets the newer revision when it has its turn"}, true
	case reasonRequest:
		return saying{what: "somebody has asked for it", change: "It goes on by itself"}, true
	case reasonPrefetch:
		return saying{what: "it fetches the revision ahead, and goes on working", change: "It goes on by itself"}, true
	}
	return saying{}, false
}

// sayStage is of nodes that wait for the stages.
func sayStage(r Reason) (saying, bool) {
	switch r {
	case reasonStage:
		return saying{
			what:   "its stage has not begun yet, or the one under way has as many nodes as it should",
			change: "The stage under way has to come to a good end; promoting leaves those of its nodes behind that cannot be touched",
			verbs:  []Do{Promote}, others: true,
		}, true
	case reasonSoak:
		return saying{what: "the nodes before it are being watched for a while", change: "The time has to pass without trouble; promoting skips the rest of it", verbs: []Do{Promote}}, true
	case ReasonApproval:
		return saying{what: "the stage before it is over, and waits for somebody's approval", change: "Somebody has to promote the rollout", verbs: []Do{Promote}}, true
	case reasonJoined:
		return saying{what: "it has come after the rollout began, and has its turn at the end", change: "The stages before the last one have to be passed", verbs: []Do{Promote}, others: true}, true
	case reasonRescue:
		return saying{
			what:   "nodes that an earlier revision has broken get this one first",
			change: "One of them has to recover, or be given up by acknowledging it", verbs: []Do{Acknowledge}, others: true,
		}, true
	case ReasonStranded:
		return saying{
			what: "nodes that are broken have to recover first, and none of them answers or can be tried any more",
			change: "One of them has to be repaired or replaced, or another revision has to be named; acknowledging them gives up their capacity, " +
				"and does not by itself let further nodes get a revision that has failed",
			verbs: []Do{Acknowledge}, others: true,
		}, true
	case reasonMinAge:
		return saying{what: "the revision is too young to be begun", change: "It has to grow older, or its minimum age has to be lowered in a new one"}, true
	}
	return saying{}, false
}

// sayFleet is of nodes that wait for the time, the fleet, or others.
func sayFleet(r Reason) (saying, bool) {
	switch r {
	case reasonGate:
		return saying{what: "a check of the whole fleet, or of the stage under way, does not allow to go on", change: "The check has to allow it: see to what it complains about"}, true
	case reasonWindow:
		return saying{what: "it is not the time of day or week in which nodes may be begun", change: "The next window has to open, or the windows of the policy have to be changed"}, true
	case reasonDoesNotFit:
		return saying{what: "the time that a node takes does not fit into what is left of the window", change: "A longer window has to open, or the windows of the policy have to be changed"}, true
	case reasonCap:
		return saying{
			what: "as many nodes are away as may be at a time", change: "One of those has to come back, or the limit has to be raised; a broken one can be given up by acknowledging it",
			verbs: []Do{Acknowledge}, others: true,
		}, true
	case reasonSerial:
		return saying{
			what: "nodes of its kind go one at a time, and another one is away", change: "That one has to come back; a broken one can be given up by acknowledging it",
			verbs: []Do{Acknowledge}, others: true,
		}, true
	case reasonQuorum:
		return saying{
			what:   "too few nodes of its kind would stay available without it",
			change: "Others of its kind have to come back, or the policy has to allow to lose the majority", others: true,
		}, true
	case ReasonOther:
		return saying{
			what: "another rollout has it: one that is at work on it, or one that selects it, too, and comes first",
			change: "One that is at work on it has to come to an end on the node; one that comes first keeps it until it does not select the node any more, or is deleted; " +
				"promoting lets the next stage begin without it",
			verbs: []Do{Promote},
		}, true
	}
	return saying{}, false
}

// sayNode is of nodes that wait for themselves.
func sayNode(r Reason) (saying, bool) {
	switch r {
	case ReasonUnhealthy:
		return saying{
			what:   "it is not known to be well, and nodes that are not are left alone",
			change: "It and its work have to be well; promoting lets the next stage begin without it, and where it is broken its capacity can be given up by acknowledging it",
			verbs:  []Do{Promote, Acknowledge},
		}, true
	case ReasonAway:
		return saying{what: "it is not available, for a reason of its own", change: "It has to be available again; promoting lets the next stage begin without it", verbs: []Do{Promote}}, true
	case ReasonNoAgent:
		return saying{what: "its agent has not been heard of", change: "The agent has to run on it; promoting lets the next stage begin without it", verbs: []Do{Promote}}, true
	case ReasonBackOff:
		return saying{what: "it rests after its last attempt", change: "The time has to pass; then it is tried again"}, true
	case ReasonBlocked:
		return saying{
			what:   "it is being emptied, and something does not let its pods go",
			change: "The budget has to allow it or the pod has to go; else the policy decides at the deadline, and aborting gives the node back", verbs: []Do{Abort},
		}, true
	}
	return saying{}, false
}

// sayFailure is of nodes of which something has failed.
func sayFailure(r Reason) (saying, bool) {
	switch r {
	case ReasonGivenUp:
		return saying{
			what:   "the revision has failed on it as often as it may, or that was accepted",
			change: "Another revision has to come; the capacity of a broken node can be given up by acknowledging it", verbs: []Do{Acknowledge},
		}, true
	case reasonFailing:
		return saying{
			what:   "the revision has failed, and is not tried on further nodes before it has succeeded where it failed",
			change: "It has to succeed where it has failed, or another revision has to come", verbs: []Do{Abort}, others: true,
		}, true
	case ReasonDeadline:
		return saying{
			what:   "it has not come to an end in time",
			change: "It has to come back, be repaired or be removed; its capacity can be given up by acknowledging it", verbs: []Do{Acknowledge},
		}, true
	case ReasonLost:
		return saying{what: "it is in the middle of an update, and its capacity was given up, or it is gone", change: "It has to come to an end by itself, or be repaired or removed"}, true
	}
	return saying{}, false
}

// sayStop is of nodes that wait because the rollout has stopped.
func sayStop(r Reason) (saying, bool) {
	switch r {
	case ReasonPaused:
		return saying{what: "somebody has paused the rollout", change: "Somebody has to resume it", verbs: []Do{Resume}}, true
	case reasonAborted:
		return saying{what: "somebody has aborted the rollout", change: "Somebody has to resume it, or name another revision", verbs: []Do{Resume}}, true
	case reasonFrozen:
		return saying{
			what:   "the rollout has stopped by itself, as something has gone wrong",
			change: "Somebody has to look at it, and accept it, abort the rollout or name another revision", verbs: []Do{Accept, Abort},
		}, true
	case ReasonClosed:
		return saying{what: "nothing may be begun, by a stop that this rollout has not asked for", change: "Whoever has set the stop has to lift it"}, true
	case ReasonCheck:
		return saying{
			what:   "a check of the policy and the fleet, made before anything is begun, does not allow the rollout",
			change: "What it has found has to be changed, or the check has to be made one that only warns",
		}, true
	case ReasonBound:
		return saying{
			what:   "more nodes could be broken before the rollout stops by itself than its policy allows",
			change: "Smaller stages or limits, a stricter detector, or a higher limit in the policy",
		}, true
	}
	return saying{}, false
}
