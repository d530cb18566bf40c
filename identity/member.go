// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

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
