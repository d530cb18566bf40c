// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import "context"

// A Planner says what a change would do, without doing it.
type Planner interface {
	// Plan has no effect. Without a Planner, a provider that has an [Updater] updates in place, and another one replaces.
	Plan(ctx context.Context, r UpdateRequest) (Plan, error)
}

// An Updater changes an instance in place.
type Updater interface {
	// Update begins or continues the change and says how far it is. It is idempotent. The instance keeps token and ProviderID.
	Update(ctx context.Context, r UpdateRequest) (Progress, error)
}

// A Validator checks a machine without any effect.
type Validator interface {
	// Validate returns an [InvalidConfig] error that names the field, or nil.
	Validate(ctx context.Context, d Desired) error
}

// Power switches an instance. Each call is idempotent.
type Power interface {
	// Stop is done when the instance is proven to run no more. Disks stay.
	Stop(ctx context.Context, ref Ref) (Progress, error)
	// Reboot restarts the instance once for each id.
	Reboot(ctx context.Context, ref Ref, id string) (Progress, error)
}

// An Adopter makes an instance from what another one has left.
type Adopter interface {
	// Adopt gives a retained instance, with its disks, to a new token and owner, and starts it. The old token is used up. It is idempotent on
	// the new token. Adopting an instance that is alive moves its tags alone.
	Adopt(ctx context.Context, r AdoptRequest) (Instance, error)
}

// Capacity says what Nodes of a config would have, for an autoscaler that starts from zero.
type Capacity interface {
	// Capacity returns quantities by resource name, as {"cpu": "4", "memory": "16Gi"}.
	Capacity(ctx context.Context, d Desired) (map[string]string, error)
}

// Console has what an instance has printed.
type Console interface {
	// Console returns the end of it, at most limit bytes.
	Console(ctx context.Context, ref Ref, limit int) ([]byte, error)
}

// Group is for environments that have sets of instances of their own, whose size alone can be set: an instance is then one of them. Sets work
// with and without it.
type Group interface {
	// Resize asks the group of that name, NAMESPACE.NAME of a set, for a size before its instances are created one by one; it may refuse with [Stockout].
	Resize(ctx context.Context, name string, size int, d Desired) error
}

// An UpdateRequest asks for an instance to become what is desired.
type UpdateRequest struct {
	Ref Ref `json:"ref"`
	// Cluster is as in [DeleteRequest].
	Cluster string `json:"cluster"`
	// Digest is that of Desired.
	Digest  string  `json:"digest"`
	Desired Desired `json:"desired"`
	// Observed is what the Node reports now.
	Observed Versions `json:"observed"`
	Join     Join     `json:"join"`
}

// An AdoptRequest asks for an instance from retained disks.
type AdoptRequest struct {
	// From is the instance that was retained.
	From Ref `json:"from"`
	// As is what Create would ask for.
	As CreateRequest `json:"as"`
}

// A Method is how a change is carried out.
type Method string

// Methods of a [Plan].
const (
	InPlace     Method = "InPlace"
	Replace     Method = "Replace"
	Unsupported Method = "Unsupported"
	Nothing     Method = "Nothing"
)

// A Plan says what a change would do.
type Plan struct {
	Method Method `json:"method"`
	// Reason is for people.
	Reason string `json:"reason,omitempty"`
	// Disrupts means that work on the node is disturbed: it is drained before.
	Disrupts bool `json:"disrupts,omitempty"`
	// Lost are disks whose data does not survive the change.
	Lost []Disk `json:"lost,omitempty"`
}

// Abilities are what a provider can do beyond the four methods. What it can't is nil.
type Abilities struct {
	Planner   Planner
	Updater   Updater
	Validator Validator
	Power     Power
	Adopter   Adopter
	Capacity  Capacity
	Console   Console
	Group     Group
}
