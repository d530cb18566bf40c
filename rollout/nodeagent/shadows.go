// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"

	"github.com/belayproject/belay/rollout/protocol"
)

// ErrConflict means that the shadow is not the version any more on which a status was decided. Nothing was written.
var ErrConflict = errors.New("the shadow has changed")

// Shadows is the agent's access to the one shadow of its own node.
type Shadows interface {
	// Read returns the shadow and its version: never one that is older than what the same value has read or stored
	// before. A shadow that does not exist is fs.ErrNotExist.
	Read(ctx context.Context) (Shadow, string, error)
	// Store replaces the status in the shadow of that version. [ErrConflict] means that nothing was written, also where
	// the shadow is gone or is another one of the same name. After any other error the status may be the old one or the
	// new one.
	Store(ctx context.Context, s Status, version string) error
}

// A Disk keeps the agent's record. *checkpoint.Store satisfies it.
type Disk interface {
	// Get returns the newest payload of a stream; absence is fs.ErrNotExist.
	Get(ctx context.Context, stream string) ([]byte, error)
	// Put makes payload the newest of its stream, durably. After an error a further Put of the same payload is a write
	// again.
	Put(ctx context.Context, stream string, payload []byte) error
}

// A Shadow is a node's shadow, as its agent reads it.
type Shadow struct {
	// Node and UID name the incarnation of the Node that it belongs to.
	Node, UID string
	// Orders are what the controllers ask for.
	Orders protocol.Orders
	// Status is what the agent has said last.
	Status Status
}

func (sh Shadow) protocol() protocol.Shadow {
	return protocol.Shadow{Node: sh.Node, UID: sh.UID, Orders: sh.Orders, Report: sh.Status.Report}
}

// A Status is all that an agent says of its node.
type Status struct {
	// Report is the part that the protocol speaks of.
	Report protocol.Report `json:"report"`
	// Current is what the node runs, Previous what it could go back to, if Revertible says that there is a way.
	Current    protocol.Revision `json:"current"`
	Previous   protocol.Revision `json:"previous"`
	Revertible bool              `json:"revertible,omitempty"`
	// From is what the node ran, and well, before the attempt.
	From protocol.Revision `json:"from"`
	// Disruption is what the attempt takes from the node, where the updater knows.
	Disruption Disruption `json:"disruption,omitempty"`
	// BootID names the boot of the node.
	BootID string `json:"bootID,omitempty"`
	// Reason says in one word why the attempt is where it is, and Message in a sentence. Both are empty if there is
	// nothing to say. Reason is that of the Updater, or Declined, PreflightFailed, PrepareFailed, ApplyFailed,
	// RevertFailed, Rebooting, Irreversible, TimedOut, FellBack, RunsOther, NotYet, Unhealthy, NoAnswer or NotHealthy.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Reasons of a status. Those of hooks and checks stand beside them.
const (
	reasonDeclined        = "Declined"        // preflight
	reasonIrreversible    = "Irreversible"    // there is no way back
	reasonPreflightFailed = "PreflightFailed" // no answer; it is asked again
	reasonPrepareFailed   = "PrepareFailed"   // it is tried again
	reasonApplyFailed     = "ApplyFailed"
	reasonRevertFailed    = "RevertFailed"
	reasonTimedOut        = "TimedOut" // Apply, Revert
	reasonRebooting       = "Rebooting"
	reasonFellBack        = "FellBack"   // what ran before runs again, and nobody said why
	reasonRunsOther       = "RunsOther"  // neither the target nor what ran before
	reasonNotYet          = "NotYet"     // the check waits
	reasonUnhealthy       = "Unhealthy"  // the check failed
	reasonNoAnswer        = "NoAnswer"   // the check could not be made
	reasonNotHealthy      = "NotHealthy" // the bound has passed
)
