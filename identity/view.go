// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// State is what a view thinks of a peer.
type State string

// The states of a peer, in the order in which a quiet one goes through them.
const (
	// Unconfirmed: the Lease was there when the view began, and has not changed since. It may be a dead one.
	Unconfirmed State = "Unconfirmed"
	// Alive: the Lease has changed less than [ViewConfig].Suspect ago.
	Alive State = "Alive"
	// Suspect: it has been quiet for longer, or has been quiet for Liveness and the mass-loss brake holds.
	Suspect State = "Suspect"
	// Lost: it has been quiet for Liveness, counted while the view was up to date.
	Lost State = "Lost"
)

// A Source tells of the Leases of a set of members: one namespace, one selector. A SharedIndexInformer of client-go satisfies it; see
// [NewInformer].
type Source interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error
}

// NewInformer returns an informer of the Leases of a component in a namespace, without what a View does not read. The caller runs it.
// selector narrows it further; it may be empty.
func NewInformer(leases cache.ListerWatcher) cache.SharedIndexInformer

// A Canary is a member of the view's own process, whose writes the view must see to know that it is up to date. [Member] is one.
type Canary interface {
	// Key is the name of its Lease, which must be one of the Source's.
	Key() types.NamespacedName
	// Written says how long ago the version was sent that has this resourceVersion, and whether that is known.
	Written(resourceVersion string) (ago time.Duration, ok bool)
}

// ViewConfig is what a [View] needs.
type ViewConfig struct {
	// Source and Canary are required.
	Source Source
	Canary Canary
	// Liveness is that of the members, see [Timing]; 0 means 40 s. Nothing in a Lease changes it.
	Liveness time.Duration
	// Suspect is how long a peer may be quiet before it is suspect; 0 means half of Liveness.
	Suspect time.Duration
	// FreshFor is how old the latest write of the Canary may be that the view has seen, for the view to be up to date; 0 means Suspect.
	FreshFor time.Duration
	// MassLoss is the share of the peers that were alive which may be lost within one Liveness; more are held back as Suspect. 0 means a
	// third, 1 is no brake. One peer may always be lost.
	MassLoss float64
	// MassLossHold is how long they are held back, counted while the view is up to date; 0 means 5 × Liveness.
	MassLossHold time.Duration
	// IndexBy are functions by name, from a Lease to the values under which [View.Indexed] finds it.
	IndexBy map[string]func(*coordinationv1.Lease) []string
	// Clock; nil means [SystemClock].
	Clock Clock
	// Metrics may be the zero value.
	Metrics ViewMetrics
}

// A Peer is a member as a view sees it.
type Peer struct {
	Key    types.NamespacedName
	State  State
	Holder string
	Host   string
	// Fingerprint and Epoch are what the holder wrote; zero if it wrote none.
	Fingerprint Fingerprint
	Epoch       Epoch
	// Quiet is how long its Lease has not changed, counted while the view was up to date; for an Unconfirmed one since the view began.
	Quiet time.Duration
	// Lease is as it was last seen. Not to be changed.
	Lease *coordinationv1.Lease
}

// Freshness says whether a view is up to date.
type Freshness struct {
	// Fresh is whether a write of the canary was seen that was sent less than FreshFor ago.
	Fresh bool
	// Age is how long ago the last write was sent of those that were seen; negative if none was.
	Age time.Duration
	// Held is how many peers the mass-loss brake holds back.
	Held int
}

// A View says which members are alive.
type View struct{}

// NewView returns a View. An error names the field, its value and what would be right.
func NewView(c ViewConfig) (*View, error)

// Run watches until ctx ends. The Source must be run by the caller.
func (v *View) Run(ctx context.Context) error

// Peers returns the peers in one of the states, all if none is given, by name.
func (v *View) Peers(states ...State) []Peer

// Get returns one peer.
func (v *View) Get(key types.NamespacedName) (Peer, bool)

// Indexed returns the peers that the function of [ViewConfig].IndexBy has put under value.
func (v *View) Indexed(index, value string, states ...State) []Peer

// Freshness says whether the view is up to date.
func (v *View) Freshness() Freshness

// Healthy returns nil while the view is up to date and no brake holds, and otherwise why not.
func (v *View) Healthy() error

// Subscribe calls handler for what happens from now on, one event after the other, first with a Join for each peer that is alive or suspect.
// For each incarnation, that is each holder of a Lease, Join and Leave alternate, beginning with Join. After cancel has returned
// handler is not called any more; it must not be called from handler.
func (v *View) Subscribe(handler func(Event)) (cancel func())

// EventType is what has happened to a peer.
type EventType string

// The types of events.
const (
	// Joined: a new incarnation is alive, or a lost one has come back.
	Joined EventType = "Joined"
	// Suspected: it has been quiet for Suspect. Recovered: it is alive again after that.
	Suspected EventType = "Suspected"
	Recovered EventType = "Recovered"
	// Left: see Event.Reason.
	Left EventType = "Left"
)

// LeaveReason is why an incarnation has left.
type LeaveReason string

// The reasons of a [Left] event.
const (
	LeftQuiet    LeaveReason = "Quiet"    // Lost
	LeftReplaced LeaveReason = "Replaced" // another holder is in the Lease; its Joined comes next
	LeftReleased LeaveReason = "Released" // the Lease was deleted
)

// An Event is a change of a peer.
type Event struct {
	Type   EventType
	Reason LeaveReason // of Left
	Peer   Peer
}
