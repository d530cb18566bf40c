// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page serves the fleet as a page for people: a map of the nodes by stage, state and revision, how far each rollout is, and the story of
// a node. It shows what is, and changes nothing: what may be asked for is shown as the kubectl belay command to copy.
//
// [Of] makes a [Model] of the objects that are seen, by the decisions that package rollout makes on them, as kubectl belay why does: what the
// page says of a node is what its controller would decide. [Diff] is what has changed between two models, and [Model.Apply] puts that on.
// [Hub] keeps the newest model while somebody watches, and nothing while nobody does. Its [Hub.Handler] answers
//
//	GET /              the page; /page.css and /page.js go with it
//	GET /events        server-sent events: "model" with a whole Model, then "change" with a Change each time that something has changed; "beat" with a
//	                   Beat first, and then again and again
//	GET /node?name=N   the Story of a node
//
// # What it does not give away
//
// A beat has the name of the cluster. A model has names of nodes, rollouts, stages and revisions, states, and the reasons of the controller; a story
// has also the names of pods and PodDisruptionBudgets, the conditions of the Node, and what the agent says. Contents of configs are in none of the
// objects that it looks at.
// Nothing asks who is there: whoever reaches the address reads it. So it belongs on a loopback address, which kubectl port-forward reaches by the
// rights of the person who asks. A Host that is no address, nor localhost, nor a name of [Options] is refused, so that a page of somebody
// else can't read this one by having its own name resolve to a loopback address.
//
// # What is not so any more
//
// A page that shows what was as if it were is worse than none. Each [Beat] says when the API server was heard from last, and whether that is too long ago; and a
// reader who has not heard three beats knows that it hears nothing.
//
// # Slow readers
//
// Nothing is queued: a reader holds the version that it was sent last, and gets the difference to the newest when it has taken that. One that
// takes longer than [WriteTime] for a write is cut off, and comes back by itself; there are at most [Options].Readers.
//
// # Concurrency
//
// Models and changes are plain data, and are not changed once made. The methods of a Hub may be called at the same time.
package page
