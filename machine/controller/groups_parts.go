// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/belayproject/belay/machine"
)

// A Group is what a namespace has of machines and of what makes them.
type Group struct {
	Deployments []machine.Deployment
	Sets        []machine.Set
	Checks      []machine.HealthCheck
	Machines    []machine.Machine
	// Matches are the selectors of sets and checks, by UID, as far as they go beyond labels. They may be missing.
	Matches map[string]func(labels map[string]string) bool
}

// Groups is where sets, deployments and health checks are stored, with their machines. Writes are guarded by the version that was read: [ErrConflict] means
// that nothing was written. Absence is io/fs.ErrNotExist, and presence io/fs.ErrExist.
type Groups interface {
	// Read returns what a namespace has: from a cache, or, with live, from the store itself, and then sets before deployments before
	// health checks before machines.
	Read(ctx context.Context, namespace string, live bool) (Group, error)

	PutDeploymentStatus(ctx context.Context, d machine.Deployment) (machine.Deployment, error)
	PutSetStatus(ctx context.Context, s machine.Set) (machine.Set, error)
	PutCheckStatus(ctx context.Context, h machine.HealthCheck) (machine.HealthCheck, error)

	// CreateSet creates a set as it is. PutSet writes all of it but the status.
	CreateSet(ctx context.Context, s machine.Set) error
	PutSet(ctx context.Context, s machine.Set) error
	DeleteSet(ctx context.Context, c machine.Choice) error
	// OwnSet makes a set the deployment's own, OwnMachine a machine the set's.
	OwnSet(ctx context.Context, c machine.Choice, d machine.Owner) error
	OwnMachine(ctx context.Context, c machine.Choice, s machine.Owner) error

	// CreateMachines creates machines as they are, at once where it can, and returns what became of each, in their order; where all is well it may return nil. There
	// are few of them. PutMachine writes a machine's owner, labels, annotations and spec, in one write.
	CreateMachines(ctx context.Context, machines []machine.Machine) []error
	PutMachine(ctx context.Context, m machine.Machine) error
	DeleteMachine(ctx context.Context, c machine.Choice) error
	// AnnotateDeployment and AnnotateSet change annotations; nil takes one away.
	AnnotateDeployment(ctx context.Context, c machine.Choice, annotations map[string]*string) error
	AnnotateSet(ctx context.Context, c machine.Choice, annotations map[string]*string) error

	// Annotate adds annotations to a machine, and returns its next version.
	Annotate(ctx context.Context, c machine.Choice, annotations map[string]string) (machine.Choice, error)
}

// A Doctor knows how Nodes are.
type Doctor interface {
	// Health is that of the Nodes of machines; one that can't be known is missing. known is false while the workload cluster can't be asked.
	Health(ctx context.Context, machines []machine.Machine) (health map[machine.Key]machine.NodeHealth, known bool)
}

// A Left is a [Budget] that knows how many more machines may be disturbed now. Of another one, and without any, the health checks of a namespace disturb one machine
// at a time: what they have under way is deducted.
type Left interface {
	Left(ctx context.Context) int
}
