// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// Rollouts are those of one disruption domain. Writes are compare-and-swap on the version that is passed with them:
// [rollout.ErrConflict] means that nothing was written. After any other error it may have been.
type Rollouts interface {
	// List returns all of them, each in any version, in any order.
	List(ctx context.Context) ([]Rollout, error)
	// Store makes d.Progress what is remembered of the rollout, and shows to people what else of d it can. A status that
	// is there already writes nothing. It returns the next version; after is when what it shows changes though nothing
	// else does, zero for never.
	Store(ctx context.Context, read Rollout, d rollout.Decisions) (next Rollout, after time.Duration, err error)
	// Finish lets a rollout that is being deleted go. One that is gone is no error.
	Finish(ctx context.Context, read Rollout) error
	// Gone asks the API server whether there is no rollout of that UID any more.
	Gone(ctx context.Context, uid string) (bool, error)
	// Asked is a text that changes with what anybody wants of any of them, and with nothing else: a pass looks again
	// then before it goes on to the next node, so that nobody who aborts waits for the nodes of a pass. It is asked for
	// often, and so answers from memory. Empty where that is not known.
	Asked() string
}

// A Rollout is one version of a rollout.
type Rollout struct {
	// Name is for people. The UID is that of the Policy.
	Name string
	// Created is when somebody has made it: a node that several select belongs to the oldest, and of those of one age to
	// the first by name.
	Created  time.Time
	Policy   rollout.Policy
	Progress rollout.Progress
	// Invalid says why there is no Policy but for its UID and its Verb: what the rollout says can't be followed, or its
	// revision is missing. Nothing is decided for it, but that it is stopped if the verb is Pause or Abort. Where its
	// Progress is not known there must be no Verb either.
	Invalid error
	// Deleting: somebody has deleted it, and a finalizer keeps it until its slots have ended.
	Deleting bool
	// Stalled is why it shows that it does not go on unless somebody does something; empty if it does not show that.
	Stalled string
	// Object is what events are about. Nil means no events.
	Object runtime.Object
	// Version belongs to the Rollouts that it came from.
	Version any
}

// Fleet are the Nodes of one disruption domain. A Node that has left the domain still belongs to it as long as it has
// a shadow there.
type Fleet interface {
	// List returns all of them, each in any version, in any order.
	List(ctx context.Context) ([]Node, error)
	// Gone asks the API server whether there is no Node of that name and UID any more.
	Gone(ctx context.Context, name, uid string) (bool, error)
	// Annotate changes annotations of the Node that was read, those with a nil value are removed. It is a
	// compare-and-swap: [rollout.ErrConflict] means that nothing was written. It returns the next version.
	Annotate(ctx context.Context, read Node, change map[string]*string) (Node, error)
}

// A Node is one version of a Node.
type Node struct {
	Name, UID           string
	Labels, Annotations map[string]string
	Created             time.Time
	Ready               bool
	Unschedulable       bool
	// Version belongs to the Fleet that it came from.
	Version any
}

// Shadows are the records of the nodes of the domain, those of Nodes that are gone among them. Writes are
// compare-and-swap on the version that is passed with them: [rollout.ErrConflict] means that nothing was written.
type Shadows interface {
	// List returns all of them, each in any version.
	List(ctx context.Context) ([]Shadow, error)
	// Live returns all of them, as the API server has them at the time of the call.
	Live(ctx context.Context) ([]Shadow, error)
	// Get returns the one of that name, as the API server has it at the time of the call. It is fs.ErrNotExist if there
	// is none.
	Get(ctx context.Context, node string) (Shadow, error)
	// Create makes the shadow of a Node that has none. [ErrOtherDomain] means that it has one in another domain.
	Create(ctx context.Context, sh protocol.Shadow) (Shadow, error)
	// Order makes o the orders of the shadow, and returns the next version.
	Order(ctx context.Context, read Shadow, o protocol.Orders) (Shadow, error)
	// Delete removes the shadow of a Node that lives on, if [protocol.Shadow.Removable] is true of the version that is
	// removed.
	Delete(ctx context.Context, read Shadow) error
	// Bury removes the shadow of a Node that is gone, by the API server's word: [rollout.ErrConflict] if it is not.
	Bury(ctx context.Context, read Shadow) error
	// Ended reports whether an attempt of any of these slots is over by the agent's word, as far as that is known by
	// now: see [Ended]. A pass begins anew then, three times in a row at most, so that what has come free is given to
	// the next node first. It is asked for often, and so answers from memory.
	Ended(slots []protocol.Slot) bool
}

// ErrOtherDomain means that a node has a shadow in another disruption domain.
var ErrOtherDomain = errors.New("a node is in one disruption domain at a time")

// A Shadow is one version of a node's record.
type Shadow struct {
	protocol.Shadow
	// Runs is what the node runs, by its agent's word, and Irreversible that there is no way back from it.
	Runs         protocol.Revision
	Irreversible bool
	// Deleting: somebody has deleted it, and a finalizer keeps it until nothing is in flight.
	Deleting bool
	// Version belongs to the Shadows that it came from.
	Version any
}

// A Drainer takes the work off nodes, and gives nodes back. It says with a mark on the Node what it has cordoned, and
// for which attempt. One of package drain is drain.NodeDrainer.
type Drainer interface {
	// Held reads from the annotations of a Node for which attempt it has cordoned it.
	Held(annotations map[string]string) (attempt int64, held bool)
	// Cordon closes the Node of that UID for an attempt, with the mark in the same write. done is false as long as it is
	// not. drains says that the node's agent waits for the drain, so that this may count as its beginning; otherwise
	// nothing that counts from there may begin.
	Cordon(ctx context.Context, node, uid string, attempt int64, drains bool) (done bool, err error)
	// Drain takes the work off a Node that carries the cordon of the attempt, and touches no other. It is one bounded
	// step: empty says that there is no more to take off, blocked names what is in the way, after is when to go on
	// though nothing has changed. By force the drain goes on past that.
	Drain(ctx context.Context, node, uid string, attempt int64, force bool) (empty bool, blocked string, after time.Duration, err error)
	// Release takes the cordon of the attempt, or of an earlier one, off again, and leaves the Node as schedulable as it
	// was found. That of a later attempt stays. done means that the API server has shown that there is nothing more to
	// take off.
	Release(ctx context.Context, node, uid string, attempt int64) (done bool, err error)
}

// A MarkingDrainer is a [Drainer] whose cordon takes annotations of others with it, which saves a write for each
// node. One of package drain is drain.NodeDrainer.
type MarkingDrainer interface {
	Drainer
	// CordonWith is Cordon. Where it writes, it changes in the same write the annotations that annotate returns for
	// those of the version that it is about to write on; one with a nil value is removed. It writes on no other version,
	// and on none if annotate says that it is not ok: done is false then.
	CordonWith(ctx context.Context, node, uid string, attempt int64, drains bool,
		annotate func(annotations map[string]string) (change map[string]*string, ok bool)) (done bool, err error)
}

// A Gate says whether the fleet allows nodes to be begun. It is asked at each pass.
type Gate interface {
	Verdict(ctx context.Context) rollout.Verdict
}

// Health says whether a node and the work on it are well. It is asked for each node at each pass, and so best answers
// from a cache.
type Health interface {
	// Baseline is what to compare the node with when it comes back: a short text, which is kept on the Node. It is asked
	// for before the node is granted, which waits as long as there is none, and recorded before or with the cordon; a
	// node that is not cordoned is granted after that.
	Baseline(ctx context.Context, n Node) (string, error)
	// Verdict is on the node: as it is if the baseline is empty, and compared with it otherwise.
	Verdict(ctx context.Context, n Node, baseline string) rollout.Verdict
}

// A Recorder takes events. The recorder of k8s.io/client-go/tools/events is one. A note has at most 1,024 bytes, which
// the API server takes: a longer message is cut.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// A Notice says that a rollout has changed its phase.
type Notice struct {
	Rollout, UID string
	From, To     rollout.Phase
	Reason       rollout.Reason
	Message      string
}

// Metrics has a function for each thing that can be counted; those that are nil are not called. They must not block.
// Revisions are names; of more than 20 in the life of a Controller the later ones are called "other".
type Metrics struct {
	// Transition counts a node that has gone from one state of the protocol to another, in an update from one revision
	// to another. Each edge that is stored is one call.
	Transition func(from, to protocol.State, fromRevision, toRevision string)
	// Update counts an attempt that has ended.
	Update func(fromRevision, toRevision string, result rollout.Result)
	// Rollout has the standing of a rollout after each pass. An empty phase means that it is gone.
	Rollout func(name string, phase rollout.Phase, counts rollout.Counts, waiting map[rollout.Reason]int)
	// Stalled has, after each pass, why a rollout shows that it does not go on unless somebody does something, as that
	// it is paused for too long; an empty reason means that it does not show that, or is gone.
	Stalled func(name string, reason string)
	// Pass has the duration of a pass and how it ended.
	Pass func(took time.Duration, err error)
}

// Bounds of what [Metrics] are told.
const (
	maxRevisions  = 20
	otherRevision = "other"
)
