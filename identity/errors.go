// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"fmt"

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
	// takeover is set if the other one is waited for.
	takeover takeover
}

// Error names both processes, and how long this one waits, if it waits.
func (e *DuplicateError) Error() string {
	where := ""
	if e.LockFile != "" {
		where = fmt.Sprintf(", which locks %q", e.LockFile)
	}
	wait := ""
	if e.takeover.after > 0 {
		wait = fmt.Sprintf(", and takes the Lease once that was silent for %v (%s)", e.takeover.after, e.takeover.reason)
	}
	return fmt.Sprintf("the name of Lease %q is in use by another living process: %q on %s%s; this is one on %s%s",
		e.Key, e.Holder, e.Theirs.describe(), where, e.Ours.describe(), wait)
}
