// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

// State is what a view thinks of a peer.
type State string

// The states of a peer, in the order in which a quiet one goes through them.
const (
	// Unconfirmed: the Lease was there when the view began, and has not changed since. It may be a dead one.
	Unconfirmed State = "Unconfirmed"
	// Alive: the view has seen the Lease change less than [ViewConfig].Suspect ago. After a gap in the watch a change is seen at its end, however
	// long ago the member made it and has died since.
	Alive State = "Alive"
	// Suspect: it has been quiet for longer, or has been quiet for Liveness and the mass-loss brake holds.
	Suspect State = "Suspect"
	// Lost: it has been quiet for Liveness, counted while the view was up to date; or it has no holder: the member has given it back by
	// emptying it.
	Lost State = "Lost"
)

// A Peer is a member as a view sees it.
type Peer struct {
	Key    types.NamespacedName
	State  State
	Holder string
	Host   string
	// Fingerprint and Epoch are what the holder wrote; zero if it wrote none that can be read.
	Fingerprint Fingerprint
	Epoch       Epoch
	// Quiet is how long its Lease has not changed, counted while the view was up to date; for an Unconfirmed one since the view began.
	Quiet time.Duration
	// Lease is as it was last seen. Not to be changed.
	Lease *coordinationv1.Lease
}

// peer makes a Peer of what was seen of it.
func (s glimpse) peer() Peer {
	return Peer{
		Key: keyOf(s.lease), State: s.state, Holder: holderOf(s.lease), Host: hostOf(s.lease),
		Fingerprint: fingerprintOf(s.lease), Epoch: writtenEpoch(s.lease), Quiet: s.quiet, Lease: s.lease,
	}
}

// peers makes Peers, ordered by name.
func peers(seen []glimpse) []Peer {
	slices.SortFunc(seen, func(a, b glimpse) int {
		if c := strings.Compare(a.lease.Namespace, b.lease.Namespace); c != 0 {
			return c
		}
		return strings.Compare(a.lease.Name, b.lease.Name)
	})
	made := make([]Peer, len(seen))
	for i, s := range seen {
		made[i] = s.peer()
	}
	return made
}

func hostOf(lease *coordinationv1.Lease) string {
	if host, ok := lease.Annotations[HostAnnotation]; ok {
		return host
	}
	return lease.Labels[HostLabel]
}

// writtenEpoch is the zero Epoch where none can be read.
func writtenEpoch(lease *coordinationv1.Lease) Epoch {
	number := epochOf(lease)
	if number == 0 {
		return Epoch{}
	}
	return Epoch{Number: number, Holder: holderOf(lease), UID: lease.UID}
}
