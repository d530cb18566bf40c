// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Errors of members. Test with errors.Is; a duplicate is a [*DuplicateError], to be found with errors.As.
var (
	// ErrLost is the cause of the end of the work's context when the Lease is no longer held: it was not renewed for [Timing].Hold,
	// another process has it, or it was deleted.
	ErrLost = errors.New("the Lease is no longer held")
	// ErrNodeGone means that the Node of the member was deleted, or is another one of the same name.
	ErrNodeGone = errors.New("the Node is gone")
	// ErrRunning means that Run was called twice.
	ErrRunning = errors.New("already running")
)

// A DuplicateError says that another living process has the name.
type DuplicateError struct {
	// Key is the Lease.
	Key types.NamespacedName
	// Ours and Theirs tell which two processes. Theirs is the zero Fingerprint if the Lease has none.
	Ours, Theirs Fingerprint
	// Holder is the holderIdentity of the other one.
	Holder string
	// LockFile is set if the other one is on this host and holds it.
	LockFile string
}

// An Epoch is one hold of a name: a fencing token. Of two epochs of the same name the later has the greater Number.
type Epoch struct {
	// Number is at least 1 more than that of the epoch before, also where the Lease was deleted in between, or the cluster was restored
	// from a backup that has the Lease. It starts from the resourceVersion of the Lease.
	Number uint64
	// Holder is the holderIdentity, made up for this hold.
	Holder string
	// UID is that of the Lease.
	UID types.UID
}

// Options of a [Member] that are not part of what it is.
type Options struct {
	// Clock; nil means [SystemClock].
	Clock Clock
	// Metrics may be the zero value.
	Metrics MemberMetrics
}

// A Member keeps the Lease of one process.
type Member struct{}

// New returns a Member. It makes no request. An error names the field of spec, its value's shape and what would be right.
func New(leases LeaseClient, spec Spec, o Options) (*Member, error)

// Run acquires the Lease, calls work, and gives the Lease back once work has returned. work may be nil: then Run keeps the Lease until
// ctx ends.
//
// The context of work ends when ctx ends, or with the cause [ErrLost] when the Lease is lost. After a loss Run waits for work to
// return, acquires the Lease again and calls work again, with a new epoch. It returns when work has returned while the Lease was held,
// with its error; nil when ctx has ended and work returned nil or the context's error; a [*DuplicateError] as [Spec].OnDuplicate has
// it; [ErrNodeGone]. While the API server does not answer, Run goes on trying. The Lease is not released if it is not held.
//
// After the end of ctx Run returns as soon as work has, and at most [Timing].Stop later.
func (m *Member) Run(ctx context.Context, work func(ctx context.Context, e Epoch) error) error

// Epoch returns the current hold, and whether the Lease is held this instant, by the clock, also where no timer has fired since the machine
// was suspended.
func (m *Member) Epoch() (Epoch, bool)

// Healthy returns nil while the Lease is held and was renewed less than two intervals ago, and otherwise why not: for a health endpoint.
func (m *Member) Healthy() error

// Status returns what is known now.
func (m *Member) Status() Status

// Key is the name of the Lease, and Written says how long ago the version of it was sent that the server answered with resourceVersion:
// a Member is the [Canary] of a view. ok is false for a version that is not one of the last 16.
func (m *Member) Key() types.NamespacedName

// Written is described at Key.
func (m *Member) Written(resourceVersion string) (ago time.Duration, ok bool)

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
