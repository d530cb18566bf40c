// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
)

// ErrConflict means that a machine has changed since it was read: nothing was written.
var ErrConflict = errors.New("the machine has changed since it was read")

// Machines is where machines are stored. Each write is guarded by the version that was read, and returns the next one; [ErrConflict] means that nothing
// was written. Absence is io/fs.ErrNotExist.
type Machines interface {
	// Get returns a machine in any version, as from a cache.
	Get(ctx context.Context, key machine.Key) (machine.Machine, error)
	// Live returns it as it is stored.
	Live(ctx context.Context, key machine.Key) (machine.Machine, error)
	// List returns all, each in any version.
	List(ctx context.Context) ([]machine.Machine, error)
	// ListLive returns all as they are stored. One that can't be read is an error.
	ListLive(ctx context.Context) ([]machine.Machine, error)
	// Twins returns other machines whose spec or status has the ProviderID.
	Twins(ctx context.Context, m machine.Machine, providerID string) ([]machine.Key, error)
	// PutStatus stores the status alone.
	PutStatus(ctx context.Context, m machine.Machine) (machine.Machine, error)
	// SetFinalizer adds ours, or takes it off.
	SetFinalizer(ctx context.Context, m machine.Machine, on bool) (machine.Machine, error)
	// SetProviderID stores spec.providerID alone.
	SetProviderID(ctx context.Context, m machine.Machine, id string) (machine.Machine, error)
}

// Nodes are those of the workload cluster, which may be another one than that of the machines.
type Nodes interface {
	// Of returns the Nodes whose ProviderID ends with the token. An error means that the workload cluster can't be asked now.
	Of(ctx context.Context, token string) ([]machine.Node, error)
	// Live is Of, asked of the workload cluster itself: a cache may not have seen a Node yet.
	Live(ctx context.Context, token string) ([]machine.Node, error)
	// Start gives a Node the labels, annotations, taints and config source of its machine, by [machine.Node.Change], with the record of it, and takes
	// off the taint of a Node that has not been looked at. Conflicts are errors.
	Start(ctx context.Context, n machine.Node, m machine.Machine) error
	// Mark keeps the cluster-autoscaler from a Node of that UID, by [machine.NoScaleDownAnnotation], or ends that. What somebody else has written
	// there stays, and is no error.
	Mark(ctx context.Context, n machine.NodeRef, on bool) error
	// Remove removes the Node of that UID. Absence is no error; a Node of that name with another UID stays, and is io/fs.ErrExist.
	Remove(ctx context.Context, n machine.NodeRef) error
}

// Secrets has what machines name.
type Secrets interface {
	// Secret returns the content of one; absence is io/fs.ErrNotExist.
	Secret(ctx context.Context, key machine.Key) (map[string][]byte, error)
}

// A Drainer takes the work off nodes, and gives nodes back: drain.NodeDrainer is one. What it has cordoned carries the attempt.
type Drainer interface {
	// Held reads from the annotations of a Node for which attempt it has cordoned it.
	Held(annotations map[string]string) (attempt int64, held bool)
	Cordon(ctx context.Context, node, uid string, attempt int64, drains bool) (done bool, err error)
	Drain(ctx context.Context, node, uid string, attempt int64, force bool) (empty bool, blocked string, after time.Duration, err error)
	Release(ctx context.Context, node, uid string, attempt int64) (done bool, err error)
}

// A Budget is the number of machines that may be disturbed at a time, shared by updates, ends, health and whoever else disturbs Nodes. A slot whose machine is
// gone belongs to nobody: a controller that dies too early does not free it, and so the budget must.
//
// A [Controller] takes slots for the changes and the end of its machines, a [GroupController] for what its health checks reboot or replace, with loans of
// [machine.Attempt], and each gives back its own. A machine never counts twice: while it has a loan of its own no remedy is begun, and when a machine that is being
// mended is changed or ends, as by its replacement, the slot that it has becomes the loan of that.
type Budget interface {
	// Take charges it for the machine of that name, as namespace/name, and UID, which has one slot at a time: what it has becomes that loan. The Node that is to
	// be disturbed is empty where the machine has none.
	Take(ctx context.Context, name, uid, loan, node, nodeUID string) (done bool, blocked string, err error)
	// Loan returns what the machine has; there is false if it has nothing.
	Loan(ctx context.Context, name, uid string) (loan string, there bool, err error)
	// Free gives that loan back, and no other one of the machine: a call may be late, and the machine may have taken a slot for the next change meanwhile. An empty loan
	// is any, of a status that names none. It is idempotent, and called for machines that have none.
	Free(ctx context.Context, name, uid, loan string) error
}

// A Blame is a [Budget] that is told of machines that have failed while they were disturbed, so that whoever shares it stops: rollout.Slots is one.
type Blame interface {
	// Fail says why. critical is a machine of the control plane. It is idempotent by the machine's UID, until Free.
	Fail(ctx context.Context, name, uid, reason string, critical bool) error
}

// A Gate says whether a machine may end.
type Gate interface {
	// Check returns why not; empty if it may.
	Check(ctx context.Context, m machine.Machine) (blocked string, err error)
}

// An Unseeing is a [Gate] that can do without what only the workload cluster knows. It is asked that way after its Check has failed, once that cluster has not answered for
// the machine's node timeout, and only where the disks are kept: [EndGate] is one.
type Unseeing interface {
	// CheckUnseen is Check, without that.
	CheckUnseen(ctx context.Context, m machine.Machine) (blocked string, err error)
}

// Members takes a machine out of the member lists of its roles' services, as of etcd. It is idempotent by the machine, works without a Node, and is done
// for a machine that was never a member.
type Members interface {
	Leave(ctx context.Context, m machine.Machine) (done bool, blocked string, err error)
}

// A Backup is what has to come before a machine of the control plane is updated or replaced, as a backup of etcd.
type Backup interface {
	// Before does it, or goes on with it, and returns whether it is done. An error, and what blocks it, keep the machine from being changed. It is called until it is
	// done, by the same attempt for the same change of the machine, also after a crash: an attempt that was done is done again by doing nothing.
	Before(ctx context.Context, m machine.Machine, attempt string) (done bool, blocked string, err error)
}

// A Starter says whether the roles of a new machine work: its Node takes part only then. Checks that do not pass within the Start of [Options].Timeouts make the machine
// Failed with [machine.ReasonStartTimeout], and are asked on: it goes on when they pass.
type Starter interface {
	// Started returns what is missing; empty if nothing is. It has to return when ctx ends, which is after [Options].CallTimeout.
	Started(ctx context.Context, m machine.Machine, n machine.Node) string
}

// A ControlPlane knows the version of the API servers.
type ControlPlane interface {
	// Skew returns why a kubelet of that version can't run beside them; empty if it can.
	Skew(ctx context.Context, kubelet string) string
}

// Metrics has a function for each thing that can be counted; those that are nil are not called. They must not block.
type Metrics struct {
	// Step counts a machine that has gone to another step.
	Step func(from, to machine.StepName)
	// Call counts an action and how it ended: class is empty after a success.
	Call func(kind machine.ActionKind, class provider.Class, took time.Duration)
	// Orphans has the number of instances that nobody owns, after each survey.
	Orphans func(n int)
}
