// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"slices"
	"sync"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// A FaultKind is what goes wrong.
type FaultKind string

// Kinds of faults.
const (
	// Latency answers after Delay. A call whose caller has left by then has no effect.
	Latency FaultKind = "Latency"
	// RateLimited answers 429 with Retry-After Delay, in whole seconds, rounded up. There is no effect.
	RateLimited FaultKind = "RateLimited"
	// Unavailable answers 503. There is no effect.
	Unavailable FaultKind = "Unavailable"
	// Unauthorized answers 401. There is no effect.
	Unauthorized FaultKind = "Unauthorized"
	// LostReply has the effect, and cuts the connection.
	LostReply FaultKind = "LostReply"
	// StaleList has List answer what was there when the fault was made. With a Delay it ends after that time, if Count has not ended it.
	StaleList FaultKind = "StaleList"
	// Partial has Create make the disks and not the instance, which is Pending for ever and has no ProviderID.
	Partial FaultKind = "Partial"
	// SlowStart has the instance that Create makes be Pending for Delay longer.
	SlowStart FaultKind = "SlowStart"
	// StartFails has the instance that Create makes be Broken when it should run.
	StartFails FaultKind = "StartFails"
	// Stockout refuses what needs capacity in Zone, or in any: Create, Adopt and Resize.
	Stockout FaultKind = "Stockout"
	// DuplicateID has Create give the ProviderID of another instance of the cluster, the one with the lowest token. It waits until there is one.
	// No provider may do that: it is for tests of what becomes of it.
	DuplicateID FaultKind = "DuplicateID"
	// KillBefore kills the server before a call has its effect.
	KillBefore FaultKind = "KillBefore"
	// KillAfter kills the server after a call has had its effect, before the reply.
	KillAfter FaultKind = "KillAfter"
	// KillWrite kills the server before an operation on its files. Skip counts those: a file that is written takes five, one that goes two.
	KillWrite FaultKind = "KillWrite"
)

// A Fault is something to go wrong. It is kept in memory: a server that was killed has none.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Method is the method that it is for, as "Create". Empty is any that the kind can be for.
	Method string `json:"method,omitempty"`
	// Zone is for Stockout alone. Empty is any.
	Zone string `json:"zone,omitempty"`
	// Skip is how many times it does not happen first.
	Skip int `json:"skip,omitempty"`
	// Count is how many times it happens then; 0 is once.
	Count int `json:"count,omitempty"`
	// Delay is what the kind says. On the wire it has nanoseconds.
	Delay time.Duration `json:"delay,omitempty"`
}

const (
	maxFaults = 1000
	maxCount  = 1_000_000
	maxDelay  = time.Hour
)

// methods are the calls of a provider.
var methods = []string{
	"Create", "Get", "List", "Delete", "Plan", "Update", "Validate", "Stop", "Reboot", "Adopt", "Capacity", "Console", "Resize",
}

// kinds are the kinds of faults, with the methods that each can be for.
var kinds = map[FaultKind][]string{
	Latency: methods, RateLimited: methods, Unavailable: methods, Unauthorized: methods, LostReply: methods, KillBefore: methods, KillAfter: methods,
	StaleList: {"List"}, Partial: {"Create"}, SlowStart: {"Create"}, StartFails: {"Create"}, DuplicateID: {"Create"}, Stockout: {"Create", "Adopt", "Resize"},
	KillWrite: nil,
}

// check returns an error that names the field that is wrong.
func (f Fault) check() error {
	of, known := kinds[f.Kind]
	switch {
	case !known:
		return invalid("kind %.80q is no kind of fault", f.Kind)
	case f.Method != "" && !slices.Contains(of, f.Method):
		return invalid("method %.80q: a fault of kind %s can be for %q", f.Method, f.Kind, of)
	case f.Zone != "" && f.Kind != Stockout:
		return invalid("zone %.80q: a fault of kind %s is for no zone; want none", f.Zone, f.Kind)
	case f.Skip < 0 || f.Skip > maxCount:
		return invalid("skip is %d: want 0 to %d", f.Skip, maxCount)
	case f.Count < 0 || f.Count > maxCount:
		return invalid("count is %d: want 0 to %d", f.Count, maxCount)
	case f.Delay < 0 || f.Delay > maxDelay:
		return invalid("delay is %s: want 0 to %s", f.Delay, maxDelay)
	case f.Delay == 0 && (f.Kind == Latency || f.Kind == SlowStart):
		return invalid("delay is 0: a fault of kind %s wants one", f.Kind)
	}
	return nil
}

// faults are those that are to happen. Its methods may be called concurrently.
type faults struct {
	mu   sync.Mutex
	list []*waiting
}

// waiting is a fault with what it needs.
type waiting struct {
	Fault
	seen []provider.Instance // what a stale List answers
	ends time.Time           // when it ends by itself, zero for never
}

// add lets a fault happen. Seen and ends are for StaleList.
func (fs *faults) add(f Fault, seen []provider.Instance, ends time.Time) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if len(fs.list) >= maxFaults {
		return invalid("there are %d faults already: want at most %d", len(fs.list), maxFaults)
	}
	f.Count = max(f.Count, 1)
	fs.list = append(fs.list, &waiting{Fault: f, seen: seen, ends: ends})
	return nil
}

// take returns the first fault of one of some kinds that happens now to a call, and counts it. One that is to be skipped is counted too.
func (fs *faults) take(now time.Time, method, zone string, of ...FaultKind) (waiting, bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.drop(now)
	for _, f := range fs.list {
		if !slices.Contains(of, f.Kind) || f.Method != "" && f.Method != method || f.Zone != "" && f.Zone != zone {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		f.Count--
		return *f, true
	}
	return waiting{}, false
}

// has reports whether there are faults of a kind.
func (fs *faults) has(kind FaultKind) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return slices.ContainsFunc(fs.list, func(f *waiting) bool { return f.Kind == kind })
}

// drop forgets the faults that have ended.
func (fs *faults) drop(now time.Time) {
	fs.list = slices.DeleteFunc(fs.list, func(f *waiting) bool {
		return f.Count == 0 || !f.ends.IsZero() && !now.Before(f.ends)
	})
}

// left are the faults that are still to happen.
func (fs *faults) left(now time.Time) []Fault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.drop(now)
	left := make([]Fault, len(fs.list))
	for i, f := range fs.list {
		left[i] = f.Fault
	}
	return left
}

// clear forgets all.
func (fs *faults) clear() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.list = nil
}
