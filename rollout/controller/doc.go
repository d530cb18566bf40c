// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller carries out what package rollout decides: for one disruption domain and all rollouts in it.
//
// A [Controller] decides nothing itself. A pass, [Controller.Reconcile], reads the fleet, its shadows, its rollouts and
// the ledger, has
// [github.com/belayproject/belay/rollout.Plan] decide for one rollout after the other, each under the caps of all, and acts:
//
//	give back the nodes whose attempt has ended -> the ledger, by compare-and-swap -> what each rollout remembers -> marks, cordons,
//	drains, orders -> shadows that are missing or not needed any more
//
// Where the ledger or a rollout has changed since it was read, everything is read and decided again, the ledger as it is stored; an old decision is
// never written. What can
// go on at once goes on in the same pass: a node is admitted, granted and marked by one of them. Nothing happens without a wake-up or a time that
// was asked for.
//
// # Promise
//
//   - Any number of controllers may work on a domain, be killed at any line, be frozen and thawed: the caps hold, and no node is disrupted
//     twice for a permission. Leader election saves work; nothing here rests on it.
//   - Nothing is evicted before the node carries the cordon of the attempt, and the live shadow has shown after that that its agent waits in
//     that attempt. A slot is freed after the node was given back, which the Node tells by its mark, and by the annotation
//     rollout.belay.dev/last-attempt later: with a [MarkingDrainer]
//     no controller, however late its lists are, cordons it again for that attempt.
//   - What is on a node is put right from the Node itself, at every pass: a cordon or mark that no slot stands behind is taken off, whoever has
//     died over it. What somebody else has cordoned, and a scale-down mark of somebody else, stay as they are.
//   - The node of an attempt is compared with a baseline that was recorded before it was cordoned, or in the same write. A node that is unhealthy
//     before is put off; so is one of which that is not known. Where somebody has removed the mark with the baseline from a node that is disrupted, nothing is
//     compared: the rollout freezes when the time to verify is over, and the node keeps its slot until a person acknowledges it.
//   - A node with a slot carries the mark of maintenance, and that for the autoscaler: before its grant, or, where it is to be cordoned and the [Drainer]
//     is a [MarkingDrainer], from its cordon on, which saves a write, and at the latest 10 seconds after its admission. Until its cordon nothing was
//     done to it; one that the autoscaler takes meanwhile is a node that is gone.
//   - A node that several rollouts select belongs to the oldest of them, and of those of one age to the first by name. The others leave it alone, say so, and
//     are not completed without it. One whose policy can't be followed keeps those that it had when it began; what another one has begun it ends first.
//   - A rollout whose policy can't be followed decides nothing, but that it is paused or aborted when somebody asks for that: the ledger is closed, grants are
//     revoked, what is committed is given back by an abort and waits after a pause, the rest comes to its end by the default deadlines. It goes on from there.
//   - Every selected node has a shadow; a node that is not selected any more ends what it is in first, and then loses it. The end of a Node
//     is believed of the API server alone.
//   - A rollout that is deleted ends its slots, gives its nodes back, opens what it had closed, and goes then.
//   - A ledger or a shadow that was deleted by hand costs capacity, and breaks no cap.
//   - How far nodes are on their way, and which have got there, is stored for many of them at once: every [Options].ShowEvery, and once more that long
//     after the last change at the latest. A phase, a failure, a request and whatever else would not be found again is stored before anything
//     follows on it; that there was an attempt, before its slot is freed.
//   - What has come free goes before the rest: a node that was admitted is granted before anything else is done, and where another attempt ends during a
//     pass, the pass begins anew after its next write, three times in a row at most.
//   - An idle pass writes nothing. Trouble with one node is an error of the pass, and stops no other node.
//
// # No promise
//
// What the status shows may be behind by [Options].ShowEvery, also what a drain hangs on: a drain deadline that is not much longer passes before it is
// shown why. As the caps of a rollout whose policy can't be followed are not known, nothing is admitted in the domain while it has slots. Evictions
// that a controller had begun when another one gave the same node back may still go out; they hit pods that were on the node all the
// time, as a drain evicts by UID. An event, a notice or a count is given by whoever has stored the change, after that: one that dies in between has
// not given it. Counts of what need not be stored at once are given when it is decided. A node that was disturbed by a controller that died within
// ShowEvery, and that is gone when the next one looks, counts as one that was not. A slot of a rollout that is gone without its end, because somebody
// has removed its finalizer, is brought to its end as if the rollout were being deleted; it is suspect when the default deadline has passed since this
// controller has seen it first, and then keeps its capacity until its node ends or goes.
//
// # Leader election
//
// Replicas that all run do the same work again and again, and conflict. To save that, give each domain a Lease of its own and run
// [Controller.Run] while it is held: with k8s.io/client-go/tools/leaderelection in OnStartedLeading, whose ctx ends with the lease, or while
// identity.Member is the first of those that its View shows alive. A leader that does not notice the end of its lease does no harm.
//
// # Concurrency
//
// One pass of a Controller runs at a time; a second call waits. All calls of its parts come from the goroutine of the pass, each with a deadline
// of [Options].CallTimeout.
//
// # Crash behaviour
//
// A Controller keeps nothing that it could not lose. What it remembers saves calls.
package controller
