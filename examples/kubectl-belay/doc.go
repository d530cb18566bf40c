// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-belay is a kubectl plugin for people who run rollouts: put it on the PATH as kubectl-belay, and there is kubectl belay.
//
//	kubectl belay status [ROLLOUT] [-w]     how far a rollout is, what waits, and why
//	kubectl belay why NODE                  why a node is where it is, what would change that, and how it came there
//	kubectl belay plan [ROLLOUT] [-f FILE]  order, stages, time, what holds up whom, and what a fatal revision can break
//	kubectl belay history [ROLLOUT]         what it was about; --diff=1,3 in what two entries differ
//	kubectl belay pause|resume|abort|promote|accept|rollback [ROLLOUT]
//	kubectl belay acknowledge ROLLOUT NODE
//	kubectl belay doctor                    what keeps rollouts from working here, and what helps
//
// Where there is one Rollout it need not be named.
//
// # What it rests on
//
// Status and history are what the controller has written. Why and plan ask rollout.Plan and rollout.Simulate with the objects of the cluster, as
// the controller does; where the controller has said something of a node, that is taken. What it was told on its
// command line is given by flags of the same names. Gates that a controller has beyond the health of nodes are not known here, nor are its switch and the
// baseline of a node in flight. Times are those of the controller's and the nodes' clocks; whether a controller is
// alive is told by its Lease being renewed while it is watched.
//
// A verb is one patch of spec.verb with a request ID that is used once, bound to the UID of the Rollout and to what was asked before. The command waits for
// status.handledRequest, and for a pause and an abort also for the proof that no node begins any more, up to --timeout.
//
// # JSON
//
// With -o json standard output holds one document: of status {"rollouts": [Status]}, with --watch one Status a line; of the others
// Why, Plan, History or Difference, Answer and Report of the packages report and doctor, whose fields have their meaning there. Fields are
// only added.
//
// # Exit codes
//
//	0  done; of a report: nothing in it needs anybody
//	1  an error: the API server, a right that is missing, a name that does not exist
//	2  the command line is wrong; nothing was done
//	3  the rollout is stopped, or something is in its way (status), the plan does not come to its end (plan), or there are problems (doctor)
//	4  the controller has refused the verb
//	5  the verb was asked for, and was not answered in time: it may be carried out later; or it is a pause or an abort, and was carried out, and
//	   it was not proven in time that no node begins any more
//
// # Rights
//
// Those of examples/manifests/kubectl-belay: belay-viewer to look, belay-operator for the verbs besides. Doctor says which are missing.
package main
