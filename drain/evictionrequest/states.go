// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/internal/evictionapi"
)

// heartbeatDeadline is how long a responder may be silent before the next one takes over.
const heartbeatDeadline = 20 * time.Minute

// sortResponders orders responders as the API server does: the highest priority first, then the domains by their
// labels from the top one down, then the keys.
func sortResponders(all []evictionapi.TargetResponder) {
	slices.SortFunc(all, func(a, b evictionapi.TargetResponder) int {
		if pa, pb := priorityOf(a), priorityOf(b); pa != pb {
			return cmp.Compare(pb, pa)
		}
		aDomain, aKey, _ := strings.Cut(a.Name, "/")
		bDomain, bKey, _ := strings.Cut(b.Name, "/")
		aLabels, bLabels := strings.Split(aDomain, "."), strings.Split(bDomain, ".")
		slices.Reverse(aLabels)
		slices.Reverse(bLabels)
		return cmp.Or(slices.Compare(aLabels, bLabels), cmp.Compare(aKey, bKey))
	})
}

func priorityOf(r evictionapi.TargetResponder) int32 {
	if r.Priority == nil {
		return -1
	}
	return *r.Priority
}

// listResponders returns the responders of a pod and the default one, all Inactive, in their order.
func listResponders(ofPod []evictionapi.PodResponder) []evictionapi.TargetResponder {
	isDefault := func(r evictionapi.PodResponder) bool { return r.Name == evictionapi.ImperativeEvictor }
	all := make([]evictionapi.TargetResponder, 0, len(ofPod)+1)
	for _, r := range slices.DeleteFunc(slices.Clone(ofPod), isDefault) {
		all = append(all, evictionapi.TargetResponder{
			Name: r.Name, Priority: r.Priority, State: evictionapi.StateInactive,
		})
	}
	priority := int32(evictionapi.ImperativeEvictorPriority)
	all = append(all, evictionapi.TargetResponder{
		Name: evictionapi.ImperativeEvictor, Priority: &priority, State: evictionapi.StateInactive,
	})
	sortResponders(all)
	return all
}

// isSilent reports whether the heartbeat deadline of an Active responder has passed, and when it does.
func isSilent(r evictionapi.ResponderStatus, now time.Time) (silent bool, deadline time.Time) {
	last := now
	if r.StartTime != nil {
		last = r.StartTime.Time
	}
	if r.HeartbeatTime != nil && r.HeartbeatTime.After(last) {
		last = r.HeartbeatTime.Time
	}
	deadline = last.Add(heartbeatDeadline)
	return !now.Before(deadline), deadline
}

// A turn is the state of the responders of an Eviction: at most one of them is Active.
type turn struct {
	targets  []evictionapi.TargetResponder // in their order
	statuses map[string]evictionapi.ResponderStatus
}

func newTurn(status evictionapi.EvictionStatus) turn {
	t := turn{targets: slices.Clone(status.TargetResponders), statuses: map[string]evictionapi.ResponderStatus{}}
	sortResponders(t.targets)
	for _, r := range status.Responders {
		t.statuses[r.Name] = r
	}
	return t
}

// indexActive returns the index of the Active responder, or -1.
func (t turn) indexActive() int {
	return slices.IndexFunc(t.targets, func(r evictionapi.TargetResponder) bool {
		return r.State == evictionapi.StateActive
	})
}

// isOver reports whether there are responders and each has ended.
func (t turn) isOver() bool {
	return len(t.targets) > 0 && !slices.ContainsFunc(t.targets, func(r evictionapi.TargetResponder) bool {
		return r.State == evictionapi.StateActive || r.State == evictionapi.StateInactive
	})
}

// advanceTurn ends the turn of a responder that has completed or is silent, and begins that of the next one. It returns
// when the Active responder will be silent, or the zero time without one.
func (t turn) advanceTurn(now time.Time) (deadline time.Time) {
	active, next := t.indexActive(), 0
	if active >= 0 {
		status := t.statuses[t.targets[active].Name]
		silent, until := isSilent(status, now)
		switch {
		case status.CompletionTime != nil:
			t.targets[active].State = evictionapi.StateCompleted
		case silent:
			t.targets[active].State = evictionapi.StateInterrupted
		default:
			return until
		}
		next = active + 1
	}
	if next >= len(t.targets) || t.targets[next].State != evictionapi.StateInactive {
		return time.Time{}
	}
	t.targets[next].State = evictionapi.StateActive
	started := metav1.NewTime(now.Truncate(time.Second))
	t.statuses[t.targets[next].Name] = evictionapi.ResponderStatus{Name: t.targets[next].Name, StartTime: &started}
	return now.Add(heartbeatDeadline)
}

// endActive ends the turn of the Active responder: Completed where it has said so, and otherwise with the state given.
func (t turn) endActive(otherwise string) {
	active := t.indexActive()
	if active < 0 {
		return
	}
	t.targets[active].State = otherwise
	if t.statuses[t.targets[active].Name].CompletionTime != nil {
		t.targets[active].State = evictionapi.StateCompleted
	}
}

// listStatuses returns the status of each responder, in the order of the targets.
func (t turn) listStatuses() []evictionapi.ResponderStatus {
	all := make([]evictionapi.ResponderStatus, 0, len(t.targets))
	for _, r := range t.targets {
		status := t.statuses[r.Name]
		status.Name = r.Name
		all = append(all, status)
	}
	return all
}
