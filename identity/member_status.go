// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/internal/option"
)

// Phase is where a member stands.
type Phase string

// The phases of a Member.
const (
	Stopped   Phase = "Stopped"   // Run is not running
	Acquiring Phase = "Acquiring" // the Lease is free, or the server does not answer
	Watching  Phase = "Watching"  // another holder is watched, whether it still renews
	Held      Phase = "Held"
	Releasing Phase = "Releasing"
)

// A Status is a picture of a Member.
type Status struct {
	Phase Phase
	// Epoch is the current or last one.
	Epoch Epoch
	// Renewed is how long ago the last successful write was sent; Remaining how long the hold goes on without another one.
	Renewed, Remaining time.Duration
	// Lease is as it was last read or written. Not to be changed.
	Lease *coordinationv1.Lease
	// Err is what went wrong with the last request, nil after one that succeeded.
	Err error
}

// known is what the goroutine of Run lets others know.
type known struct {
	phase Phase
	epoch Epoch
	// held is set from the acquisition to the loss or release. Whether the time is up is another question: good is when the last successful
	// write was sent.
	held      bool
	good      time.Duration
	lease     *coordinationv1.Lease
	err       error
	duplicate *DuplicateError
	// takeover is set in the phase Watching: when a silent holder's Lease is taken.
	takeover takeover
	// written are the latest versions, in a ring; writes is how many there were.
	written [16]version
	writes  int
}

// A version is one that the member has written.
type version struct {
	resourceVersion string
	sent            time.Duration
}

var _ Canary = (*Member)(nil)

func (m *Member) know(change func(k *known)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.known)
}

func (m *Member) now() (known, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known, m.clock.Elapsed()
}

func (m *Member) start() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known.phase != Stopped {
		return false
	}
	m.known.phase, m.known.err, m.known.duplicate = Acquiring, nil, nil
	return true
}

func (m *Member) stop() {
	m.know(func(k *known) { k.phase, k.held = Stopped, false })
}

// wrote makes a successful write known.
func (k *known) wrote(r reply[*coordinationv1.Lease]) {
	k.lease, k.good = r.value, r.sent
	k.written[k.writes%len(k.written)] = version{r.value.ResourceVersion, r.sent}
	k.writes++
}

// holds reports whether the Lease is held at a time of the clock.
func (k *known) holds(now time.Duration, t Timing) bool { return k.held && now-k.good < t.Hold }

// Epoch returns the current hold, and whether the Lease is held this instant, by the clock, also where no timer has fired since the machine
// was suspended.
func (m *Member) Epoch() (Epoch, bool) {
	if m.clock == nil {
		return Epoch{}, false
	}
	k, now := m.now()
	return k.epoch, k.holds(now, m.spec.Timing)
}

// Healthy returns nil while the Lease is held and was renewed less than two intervals ago, and otherwise why not: for a health endpoint.
func (m *Member) Healthy() error {
	if m.clock == nil {
		return option.NotMade("identity.Member.Healthy", "identity.New")
	}
	k, now := m.now()
	t := m.spec.Timing
	interval := t.longest()
	switch {
	case k.duplicate != nil:
		return k.duplicate
	case k.phase == Watching:
		return errors.Join(fmt.Errorf("holding Lease %q: not held, %s: it is taken once its holder was silent for %v (%s)",
			m.Key(), k.phase, k.takeover.after, k.takeover.reason), k.err)
	case !k.holds(now, t):
		return errors.Join(fmt.Errorf("holding Lease %q: not held, %s", m.Key(), k.phase), k.err)
	case now-k.good >= 2*interval:
		return errors.Join(fmt.Errorf("holding Lease %q: renewed %s ago, want less than %s", m.Key(), now-k.good, 2*interval), k.err)
	}
	return nil
}

// Status returns what is known now.
func (m *Member) Status() Status {
	if m.clock == nil {
		return Status{}
	}
	k, now := m.now()
	s := Status{Phase: k.phase, Epoch: k.epoch, Lease: k.lease, Err: k.err}
	if k.writes > 0 {
		s.Renewed = now - k.good
	}
	if k.holds(now, m.spec.Timing) {
		s.Remaining = k.good + m.spec.Timing.Hold - now
	}
	return s
}

// Key is the name of the Lease, and Written says how long ago the version of it was sent that the server answered with resourceVersion:
// a Member is the [Canary] of a view. ok is false for a version that is not one of the last 16.
func (m *Member) Key() types.NamespacedName { return m.spec.Key() }

// Written is described at Key.
func (m *Member) Written(resourceVersion string) (ago time.Duration, ok bool) {
	if m.clock == nil {
		return 0, false
	}
	k, now := m.now()
	for _, v := range k.written {
		if resourceVersion != "" && v.resourceVersion == resourceVersion {
			return now - v.sent, true
		}
	}
	return 0, false
}
