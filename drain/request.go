// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Mode says what a node is wanted for.
type Mode string

// The modes of a [Request].
const (
	// Cordon closes the node to new pods, and leaves those that are there.
	Cordon Mode = "Cordon"
	// Drain cordons the node and empties it.
	Drain Mode = "Drain"
	// Hold cordons the node, leaves its pods, and renews its Lease while the kubelet is down, up to [Request].HoldUntil.
	Hold Mode = "Hold"
	// Release takes the holder's mark off the node, and with the last one gives back the state found before the first.
	Release Mode = "Release"
)

// A Request says what one holder wants of one node. It is given anew to each pass; the caller keeps it where it keeps its own state.
type Request struct {
	// Node is the name of the Node.
	Node string
	// NodeUID, when set, is the Node that is meant: one of the same name with another UID is left alone. Empty means the one that
	// is there at the first pass.
	NodeUID types.UID
	// Holder names who asks, the same over restarts, and different from every other actor: "rollout/kernel-6.12".
	Holder string
	// Maintenance identifies this maintenance of the node. Drained is latched for it: a new ID drains anew. A Drain and a
	// Hold need it.
	Maintenance string
	// Run names the run of a program that asks, the same as long as it lives and never again: two runs then never drain a
	// node for one holder at the same time. The second one is [Failed] for [HeldByOtherRun]; where it takes over, the
	// first is [Failed] for [Superseded]. A Release takes off what the run has entered. Empty is for a holder that has one
	// process at a time, such as a controller with leader election: it goes on where the process before it ended, and
	// meets neither.
	Run string
	// TakeOver says whether the node may be taken from that run of the holder, which has not ended its drain or hold on
	// it: true, where the run is known to have died. It must not block. Nil is never.
	TakeOver func(run string) bool
	// Mode is what is wanted.
	Mode Mode
	// Policy says how pods are treated. The zero value is the safe one.
	Policy Policy
	// Deadline, when set, ends the drain: at that time no further eviction starts and the result is Blocked. Absolute.
	Deadline time.Time
	// HoldUntil is when Hold stops renewing the Lease; it is required for Hold, and at most [MaxHold] away when the hold begins.
	HoldUntil time.Time
	// Last is the status that the previous pass returned, if the caller has kept it. It brings back over a restart what only memory knew.
	Last *Status

	beginning
}

// A beginning is what the parts of this package say of how a maintenance begins and ends.
type beginning struct {
	// cordonFor says what a Cordon leads to. unlatched: that the node is drained is not recorded on it, unless conditions
	// are written anyway.
	cordonFor cordonPurpose
	unlatched bool
	// annotate says which other annotations change with the write that enters the holder: see [NodeDrainer.CordonWith].
	annotate func(annotations map[string]string) (change map[string]*string, ok bool)
}

// modeWaiting is that of an entry which closes a node that waits for its turn in a set. No request asks for it.
const modeWaiting Mode = "Waiting"

// A cordonPurpose is what a [Cordon] leads to.
type cordonPurpose uint8

const (
	_ cordonPurpose = iota // nothing more
	// cordonAndDrain is the beginning of a drain, and is entered as one where that may begin.
	cordonAndDrain
	// cordonAhead is that of a node which waits for its drain, and is entered only where the drain might begin.
	cordonAhead
)

// MaxHold is the longest time for which a node may be held without its kubelet.
const MaxHold = 4 * time.Hour

// A PodRef is one pod, by name and UID.
type PodRef struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// Key is the pod's name in its namespace.
func (p PodRef) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// String is the usual namespace/name.
func (p PodRef) String() string { return p.Key().String() }
