// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// A Key names an object.
type Key struct{ Namespace, Name string }

// String returns namespace/name.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// A Machine is one version of one machine: what is wanted of it, and what is known.
type Machine struct {
	Key
	UID string
	// Version is that of the store; a write with an older one fails.
	Version     string
	Generation  int64
	Labels      map[string]string
	Annotations map[string]string
	Created     time.Time
	// Deleted is when somebody asked for its end; zero if nobody did.
	Deleted time.Time
	// Finalizer means that the machine stays until we let it go.
	Finalizer bool
	// Owner is the UID of the set that it belongs to, and its name.
	Owner Owner
	Spec  Spec
	Status
}

// An Owner is the controlling object of a machine or a set.
type Owner struct{ UID, Name string }

// Spec is what is wanted of a machine.
type Spec struct {
	provider.Desired
	// ProviderID is what the Node has. It is written here when it is known, so that a machine that lost its status is found again.
	ProviderID string
	// Bootstrap and Credentials name Secrets in the machine's namespace. Empty means none.
	Bootstrap, Credentials string
	// ConfigSource is copied to the Node's NodeConfig as it is, for package configsync. Empty means none.
	ConfigSource []byte
	UpdatePolicy UpdatePolicy
	Deletion     Deletion
	// Decommission is the first of two steps of an end: the machine is emptied and switched off, and stays until it is deleted too. Sets
	// choose no control-plane machine that was not entered for it.
	Decommission bool
	// Paused stops every change, also a deletion. Status follows.
	Paused bool
	// Adopt is the token of a retained instance whose disks this machine takes over.
	Adopt string
}

// An UpdatePolicy says which ways of an update may be taken.
type UpdatePolicy string

// Update policies. The zero value is ProviderDecides.
const (
	// ProviderDecides takes the way that the provider plans.
	ProviderDecides UpdatePolicy = "ProviderDecides"
	// InPlaceOnly refuses a replacement.
	InPlaceOnly UpdatePolicy = "InPlaceOnly"
	// ReplaceOnly replaces, also where the provider could update in place.
	ReplaceOnly UpdatePolicy = "ReplaceOnly"
	// ManualUpdate shows the plan and waits for [ApproveAnnotation] with its digest.
	ManualUpdate UpdatePolicy = "Manual"
)

// Annotations on machines.
const (
	// ApproveAnnotation has the digest of the change that somebody has looked at.
	ApproveAnnotation = "machine.belay.dev/approve"
	// RetryAnnotation with a new value ends every backoff, and has a change that the provider has refused planned again.
	RetryAnnotation = "machine.belay.dev/retry"
	// OverrideAnnotation names what is not to be waited for any more, separated by commas: "gates", "drain", "hooks", "backup", "leave", "stopped",
	// "node".
	OverrideAnnotation = "machine.belay.dev/override"
	// DeleteAnnotation marks the machine that is to go first when its set shrinks, as the cluster-autoscaler writes it for this group.
	DeleteAnnotation = "belay.dev/delete-machine"
)

// Deletion says how a machine ends.
type Deletion struct {
	// DrainTimeout bounds the drain; then the machine goes on without. 0 means that it waits for ever.
	DrainTimeout time.Duration
	// NodeTimeout bounds how long an unreachable workload API holds up the release of an instance; 0 is [DefaultNodeTimeout]. The Node is removed when that API answers: until
	// then it is one of the Strays of the status, and a machine that is deleted stays.
	NodeTimeout time.Duration
	// Disks is what becomes of them; the zero value retains.
	Disks provider.Mode
	// RetainFor is how long retained disks are kept; 0 is for ever.
	RetainFor time.Duration
	// Hooks are what has to happen first, each by its owner.
	Hooks []Hook
}

// mode is what becomes of disks: they are kept unless somebody wrote otherwise.
func (d Deletion) mode() provider.Mode {
	if d.Disks == provider.Destroy {
		return provider.Destroy
	}
	return provider.Retain
}

// A Hook holds up the end of a machine until its owner has taken it out of the list.
type Hook struct {
	Name, Owner string
	Phase       HookPhase
	// Timeout bounds the wait; 0 waits for ever.
	Timeout time.Duration
}

// A HookPhase is when a hook holds up the end.
type HookPhase string

// Phases of hooks.
const (
	// BeforeDrain holds before the node is cordoned.
	BeforeDrain HookPhase = "BeforeDrain"
	// BeforeStop holds after the drain, as for taking the machine out of the member lists of its services.
	BeforeStop HookPhase = "BeforeStop"
)

// DefaultNodeTimeout is that of [Deletion.NodeTimeout].
const DefaultNodeTimeout = 10 * time.Minute
