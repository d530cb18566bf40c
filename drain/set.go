// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// A Set is a number of nodes to be drained in one maintenance.
type Set struct {
	// Request is what is wanted of each node; its Node, NodeUID and Last are not used.
	Request Request
	// Groups lists node names. A group starts when every node of the one before it is drained, or has ended otherwise and
	// SkipFailed is set. Within a group the order is kept. A set in no order is one group. A Node that is deleted after
	// its drain has begun counts as drained.
	Groups [][]string
	// MaxNodes is how many nodes may be draining at any time: a number, or a percent of all nodes of the set, rounded
	// down, at least one. The zero value means one. A node on which none but pods are left that they themselves or
	// their budgets keep gives its place to the next one. It goes on as soon as one of them can leave, beside the others.
	MaxNodes intstr.IntOrString
	// LeaveOpen leaves the nodes that wait for a place schedulable. Without it all nodes of a group are cordoned when the
	// group starts, so that no pod moves to a node from which it has to move again. That is one write more for each of
	// them. [Drainer.Run] opens them again if the set stops before their turn; a caller of ReconcileSet releases them. Set
	// it for a set of all workers, and where nodes are given back one by one: pods need a place. A policy with
	// OutsideWindow Undo leaves them open too.
	LeaveOpen bool
	// NodeTimeout, when set, bounds the drain of each node from its beginning, within Request.Deadline.
	NodeTimeout time.Duration
	// SkipFailed lets the next node, and the next group, start although one has failed, or its deadline has passed. A node
	// that is blocked and not past its deadline goes on draining.
	SkipFailed bool
	// Last is the status that the previous pass returned, if the caller has kept it.
	Last *SetStatus
}

// A SetStatus is what one pass over a [Set] found and did.
type SetStatus struct {
	// Nodes are in the order of the groups.
	Nodes []Status `json:"nodes"`
	// Done is true when every node has come as far as its mode goes, has failed, or is past its deadline. A node that is blocked or paused
	// without a deadline is not done: it goes on by itself when somebody has acted.
	Done bool `json:"done,omitempty"`
	// Reason and Message say why the set as a whole stands still, for example [Frozen].
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}
