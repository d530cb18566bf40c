// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeagent is the node's half of a rollout: it takes attempts that the controller grants, changes the node through an [Updater],
// watches whether the node is well, and says so in the node's shadow.
//
// What may follow what is settled by package protocol, on the version of the shadow that a report is stored over. An [Agent] looks at its
// shadow, at its own record on the node's disk and at the node, decides one step, takes it, and looks again:
//
//	grant    -> Preflight -> commit on disk -> commit in the shadow
//	proceed  -> intent and boot ID on disk -> report -> Apply, or Revert for an attempt that goes back; without that report where an Apply is
//	            said to take no boot
//	returned, or another boot ID -> Observe: the target -> Verifying, what ran before -> FailedClean, neither -> FailedBroken
//	Verifying -> Verify, again and again -> Done; or at the bound FailedBroken, or Revert and FailedClean
//
// [Exec] is an Updater that runs commands, [Config] one over a config syncer.
//
// # Promise
//
//   - Nothing of the node is changed before its agent has committed the attempt on a version of the shadow that does not revoke it, was told to
//     proceed, and has the intent acknowledged by the disk. An attempt is committed once; a grant in the shadow of another incarnation of
//     the Node is not honoured, and the attempt that such a node was in is not taken for one of this.
//   - Every report is on the disk before it is tried to be stored, so that a shadow that was deleted is told the truth.
//   - Apply and Revert are called again only with the same [Attempt].Key, in the boot in which the intent was recorded, as long as it is not
//     on the disk what came of them. After another boot they are not: the node is looked at.
//   - A preflight that declines, and an order to go back where there is no way back, end as Refused, with a reason, and nothing is touched.
//   - What takes no boot by the word of a [Disrupter], and does not go back, begins in silence: the shadow shows that it was told to proceed until it shows
//     what came of that. That saves a write for each node. Agents that were killed meanwhile, and boots that nobody has foreseen, are reported.
//   - Done means that the checks have passed for [Options].VerifyFor of running time, in one boot, without one that failed.
//   - What has begun goes on while the API server can't be reached, also the way back: a revision that cuts the node off is taken back if
//     [Options].RevertBroken asks for that.
//   - The agent writes its own status and nothing else. It reports what the node runs whenever that has changed.
//
// # No promise
//
// The Updater is believed: one that says that the node runs what it ran before says with it that the node is whole. An Updater that can't
// observe keeps everything as it is; so does a disk that can't be read or written. The deadlines of the controller see both. One node
// has one agent: two of them over one disk are kept apart by the store's lock, over two disks by nothing. Time in which no agent runs
// counts neither as healthy nor, beyond one interval for each start, against the bound. An agent that fetches ahead answers a grant when it has
// ended.
//
// # Concurrency
//
// [Agent.Reconcile] may be called from several goroutines; one pass runs at a time. [Agent.Run] calls it. An Updater is called by one
// goroutine at a time.
//
// # Crash behaviour
//
// An agent may be killed at any line: all that it needs is in its shadow and in one record of its [Disk]. Without the record, what
// the shadow says stands if it is of this incarnation of the Node, and nothing that may have begun is begun again; what was told to proceed, and begins in silence,
// may have. A record that is there and can't be read is an error at every pass,
// never an empty one.
package nodeagent
