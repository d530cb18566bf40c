// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/option"
)

// A Source tells of the Leases of a set of members: one namespace, one selector. A SharedIndexInformer of client-go satisfies it; see
// [NewInformer]. What it watches it must tell in the order of the server. If it has the method LastSyncResourceVersion() string, as an informer
// has, which says up to which version it has listed or watched, then losses are told sooner.
type Source interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error
}

// A Canary is a member of the view's own process, whose writes the view must see to know that it is up to date. [Member] is one.
type Canary interface {
	// Key is the name of its Lease, which must be one of the Source's.
	Key() types.NamespacedName
	// Written says how long ago the version was sent that has this resourceVersion, and whether that is known. It is called often, must
	// not wait, and must not call the view.
	Written(resourceVersion string) (ago time.Duration, ok bool)
}

// ViewConfig is what a [View] needs.
type ViewConfig struct {
	// Source and Canary are required.
	Source Source
	Canary Canary
	// Liveness is that of the members, see [Timing]; 0 means 40 s. Nothing in a Lease changes it. A quiet peer is lost once a write of the
	// Canary was seen that was sent Liveness after the peer's Lease last changed, and after it one more write of any peer, which shows that no
	// list is under way. That is at most two of the Canary's renewals after Liveness, as a rule one, and longer by the time in which the
	// view is not up to date.
	Liveness time.Duration
	// Suspect is how long a peer may be quiet before it is suspect, at most Liveness; 0 means half of Liveness. It should be more than the
	// members' [Timing].Renew with its jitter.
	Suspect time.Duration
	// FreshFor is how old the latest write of the Canary may be that the view has seen, for the view to be up to date; 0 means half of
	// Liveness, which is the most. It must be more than the Canary's Timing.Renew with its jitter. A watch that hangs makes peers suspect in
	// this time, and nobody lost.
	FreshFor time.Duration
	// MassLoss is the share of the peers that were alive which may be lost within one Liveness; if more would be, all are held back as
	// Suspect. 0 means a third, 1 is no brake. One peer may always be lost.
	MassLoss float64
	// MassLossHold is how much longer than Liveness a peer is held back at most, counted while the view is up to date; 0 means 5 × Liveness.
	MassLossHold time.Duration
	// IndexBy are functions by name, from a Lease to the values under which [View.Indexed] finds it. They depend on nothing but the
	// Lease, and must not call the view.
	IndexBy map[string]func(*coordinationv1.Lease) []string
	// Clock; nil means [SystemClock].
	Clock Clock
	// Metrics may be the zero value.
	Metrics ViewMetrics
}

// defaults.
const (
	defaultLiveness = 40 * time.Second
	defaultMassLoss = 1.0 / 3
)

// complete returns c with its defaults.
func (c ViewConfig) complete() ViewConfig {
	if c.Liveness == 0 {
		c.Liveness = defaultLiveness
	}
	if c.Suspect == 0 {
		c.Suspect = c.Liveness / 2
	}
	if c.FreshFor == 0 {
		c.FreshFor = c.Liveness / 2
	}
	if c.MassLoss == 0 {
		c.MassLoss = defaultMassLoss
	}
	if c.MassLossHold == 0 {
		c.MassLossHold = 5 * c.Liveness
	}
	if c.Clock == nil {
		c.Clock = SystemClock()
	}
	return c
}

// validate checks what complete returned. The error joins one for each wrong field.
func (c ViewConfig) validate() error {
	check := option.For("identity.NewView", nil)
	wrong := check.Wrong
	check.Require("ViewConfig.Source", c.Source, "an informer of Leases, see NewInformer")
	check.Require("ViewConfig.Canary", c.Canary, "the Member of this process")
	if check.Err() != nil {
		return check.Err()
	}
	if key := c.Canary.Key(); key.Namespace == "" || key.Name == "" {
		wrong("Canary has the Lease %q, want a namespace and a name", key)
	}
	if c.Liveness < 0 {
		wrong("Liveness is %v, want more than 0", c.Liveness)
	}
	if c.Suspect < 0 || c.Suspect > c.Liveness {
		wrong("Suspect is %v, want at most Liveness, %v", c.Suspect, c.Liveness)
	}
	if c.FreshFor < 0 || c.FreshFor > c.Liveness/2 {
		wrong("FreshFor is %v, want at most half of Liveness, %v", c.FreshFor, c.Liveness/2)
	}
	if !(c.MassLoss > 0 && c.MassLoss <= 1) { // also NaN
		wrong("MassLoss is %v, want more than 0 and at most 1", c.MassLoss)
	}
	if c.MassLossHold < 0 {
		wrong("MassLossHold is %v, want more than 0", c.MassLossHold)
	}
	for name, index := range c.IndexBy {
		if index == nil {
			wrong("IndexBy has no function under %q", name)
		}
	}
	return check.Err()
}
