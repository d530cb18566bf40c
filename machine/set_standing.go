// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import "time"

// A standing is how a machine stands in its set.
type standing struct {
	*Machine
	// known means that its Node could be asked, or that there is none to ask.
	known, ready, available bool
	// unsettled means that its spec has changed, as by a move to another template, and that its instance has not followed yet: it will be disturbed.
	unsettled bool
	// readyIn is when a machine that is ready becomes available; 0 if it is, or isn't ready.
	readyIn time.Duration
	node    NodeHealth
}

// stand looks at one machine. available takes a Node that has been ready for minReady, and nothing of ours that disturbs it.
func stand(m *Machine, nodes map[Key]NodeHealth, minReady time.Duration, now time.Time) standing {
	s := standing{Machine: m, known: m.Node == nil, unsettled: m.Token != "" && m.Digest != m.Spec.Digest()}
	if s.known {
		return s
	}
	s.node, s.known = nodes[m.Key]
	since, ready := s.node.ready()
	s.ready = s.known && ready
	if !s.ready || notStarted(m) || disturbed(m) || m.Spec.Decommission {
		return s
	}
	s.readyIn = max(0, since.Add(minReady).Sub(now))
	s.available = s.readyIn == 0
	return s
}

// ready reports whether the Node is, and since when.
func (n NodeHealth) ready() (since time.Time, ready bool) {
	for _, c := range n.Conditions {
		if c.Type == "Ready" {
			return c.Since, c.Status == "True" && !n.Gone
		}
	}
	return time.Time{}, false
}

// notStarted means that the present instance has not passed its role's checks yet.
func notStarted(m *Machine) bool {
	switch m.Step.Name {
	case StepPending, StepCreating, StepJoining, StepStarting:
		return true
	}
	return false
}

// disturbed means that something of ours takes the machine away from its work, now or soon.
func disturbed(m *Machine) bool {
	if !m.Deleted.IsZero() || m.Release != nil {
		return true
	}
	return m.Update != nil && (m.Update.Slot || m.Update.Drained || m.Update.Sent)
}

// unhealthy means that it is known not to work. What can't be asked is not unhealthy.
func (s standing) unhealthy() bool {
	return s.Phase == PhaseFailed || s.Node != nil && s.known && !s.ready
}

// loses reports whether its end takes away a machine that works, for all that is known.
func (s standing) loses() bool {
	return s.available || !s.known && !disturbed(s.Machine)
}

func (s standing) works() bool { return s.available && !s.unsettled }

func (s standing) deleting() bool { return !s.Deleted.IsZero() }
