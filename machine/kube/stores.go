// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// Machines are those of one namespace, or of all: what [controller.New] takes. [NewMachines] makes it; nobody else can.
type Machines interface {
	// Machines read from the watch; what this version cannot read is missing there. ListLive, Live and writes ask the API
	// server.
	controller.Machines
	// Gone reports whether the API server has no machine of that name, as namespace/name, with that UID. It makes
	// Machines the Holders of a rollout.Slots.
	Gone(ctx context.Context, name, uid string) (bool, error)
	// Run watches until ctx ends. changed is called with each machine that has changed; it must not block. Call it once;
	// the function [Run] of this package does.
	Run(ctx context.Context, changed func(machine.Key)) error
	// Synced reports whether everything is there that there was when Run began. Nothing must be reconciled before.
	Synced() bool

	asStore() *machineStore
}

// Nodes are those of the workload cluster: what [controller.New] takes. [NewNodes] makes it; nobody else can.
type Nodes interface {
	controller.Nodes
	// Synced reports whether all Nodes are there that there were at the start.
	Synced() bool

	asStore() *nodeStore
}

// Groups are sets, deployments and health checks, with their machines: what [controller.NewGroups] takes. [NewGroups]
// makes it; nobody else can.
type Groups interface {
	controller.Groups
	// Run watches until ctx ends, or returns why it can't. changed is called with the namespace of what has changed; it
	// must not block. Call it once; [RunGroups] does.
	Run(ctx context.Context, changed func(namespace string)) error
	// Synced reports whether everything is there that there was when Run began.
	Synced() bool

	asStore() *groupStore
}

var (
	_ Machines          = (*machineStore)(nil)
	_ Nodes             = (*nodeStore)(nil)
	_ Groups            = (*groupStore)(nil)
	_ controller.Doctor = (*doctor)(nil)
)

func (s *machineStore) asStore() *machineStore { return s }

func (s *nodeStore) asStore() *nodeStore { return s }

func (g *groupStore) asStore() *groupStore { return g }
