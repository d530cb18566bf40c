// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// A Deployment brings a number of machines from one template to the next.
type Deployment struct {
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
	Spec    DeploymentSpec
	Status  DeploymentStatus
}

// DeploymentSpec is what is wanted of a deployment.
type DeploymentSpec struct {
	Replicas int
	// Selector are labels that all of its machines have. It never changes.
	Selector map[string]string
	Template Template
	Strategy Strategy
	// Order, MaxProvisioning and MinReady are those of its sets.
	Order           DeleteOrder
	MaxProvisioning int
	MinReady        time.Duration
	// Deadline is how long a rollout may stand still until that is a failure; 0 is 30 minutes.
	Deadline time.Duration
	// History is how many old sets without machines are kept; 0 is 10, less keeps none.
	History int
	// Paused stops every change, between any two machines. Status follows.
	Paused bool
}

// Defaults of a deployment.
const (
	defaultDeadline = 30 * time.Minute
	defaultHistory  = 10
)

// A Strategy is how machines come to a new template. The zero value is a RollingUpdate with one machine more at a time.
type Strategy struct {
	Type StrategyType
	// MaxSurge is how many machines there may be beyond the replicas, a share of them rounded up. MaxUnavailable is how many of the replicas may
	// be missing by our doing, a share rounded down. Both 0 is a surge of 1; a share that is rounded down to 0 beside no surge is 1 machine that
	// may be missing, as in apps/v1.
	MaxSurge, MaxUnavailable Amount
}

// A StrategyType names a way.
type StrategyType string

// Strategies. The zero value is RollingUpdate.
const (
	// RollingUpdate makes new machines and deletes old ones.
	RollingUpdate StrategyType = "RollingUpdate"
	// OnDelete makes a new machine for each old one that somebody else deletes.
	OnDelete StrategyType = "OnDelete"
	// InPlace moves each machine that its provider can update in place to the new template, at no cost where the provider plans nothing, and goes on like
	// RollingUpdate with sets that have none of them left. A set with a machine that can neither be moved nor replaced stays.
	InPlace StrategyType = "InPlace"
)

// DeploymentStatus is what is known of a deployment.
type DeploymentStatus struct {
	// Replicas are its machines, Updated those of the present template. Ready and Available are as in [SetStatus].
	Replicas, Updated, Ready, Available int
	// Revision is that of the present template.
	Revision int64
	// Collisions counts the names of sets that others had taken.
	Collisions int
	// Progressed is when the rollout came forward last, or was seen to be complete.
	Progressed time.Time
	// Failure is why it doesn't go on; nil if it does.
	Failure *Failure
	// Message says what it waits for; empty if for nothing.
	Message string
	// Observed is the generation that the rest speaks of.
	Observed int64
}

// Reasons of a failure of a deployment.
const (
	ReasonStalled         = "Stalled"
	ReasonInvalidTemplate = "InvalidTemplate"
)

// Labels and annotations on sets and machines of deployments. The first three are those that the cluster-autoscaler looks for, whatever the group.
const (
	// RevisionAnnotation on a set has the number of its revision.
	RevisionAnnotation = "machinedeployment.clusters.x-k8s.io/revision"
	// PausedAnnotation on a set or a deployment keeps the cluster-autoscaler away.
	PausedAnnotation = "cluster.x-k8s.io/paused"
	// DeploymentLabel on sets and machines has the name of the deployment.
	DeploymentLabel = "cluster.x-k8s.io/deployment-name"
	// NoScaleDownAnnotation on the Node of a machine that is drained keeps the cluster-autoscaler from removing it, unless the machine is being deleted
	// anyway.
	NoScaleDownAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// hashLabel on sets and machines has the hash of the template.
	hashLabel = "machine.belay.dev/template-hash"
)

// A DeploymentView is all that [DecideDeployment] looks at.
type DeploymentView struct {
	Deployment Deployment
	Now        time.Time
	// Sets and Machines are all of the namespace.
	Sets     []Set
	Machines []Machine
	// Live means that Sets, after them Deployment, and after that Machines, were read from the server itself in this pass, and not from a cache.
	Live bool
	// Restored is as in [SetView].
	Restored bool
	// Nodes and Cost are as in [SetView].
	Nodes map[Key]NodeHealth
	Cost  map[Key]float64
	// Plans are what the provider says of bringing a machine to the template, for InPlace. One that is missing is asked for in DeploymentDecision.Plan.
	Plans map[Key]provider.Plan
	// Skew is why the template's kubelet can't run beside the control plane, by [Skew]; empty if it can.
	Skew string
}

// A DeploymentDecision is what comes next for a deployment. Status is stored first if Store is set, guarded by Version, and on a conflict nothing is
// done. Then come the rest, in any order or not at all.
type DeploymentDecision struct {
	Status DeploymentStatus
	Store  bool
	// NeedLive means that there is something to do, and that it takes a view with Live to decide it.
	NeedLive bool
	// Adopt are sets that become the deployment's own, by a patch of their owner guarded by Version.
	Adopt []Choice
	// Create is a set to be created; nil for none. One that exists is no success: the next pass sees whose it is.
	Create *Set
	// Update are sets as they should be, Status apart, with the Version that was looked at: each is written as it is, or, on a conflict, not at all.
	Update []SetUpdate
	// Moves are machines that change to another set, each by one write of owner, labels, annotations and spec.
	Moves []Move
	// Delete are old sets without machines, to be deleted guarded by UID and Version.
	Delete []Choice
	// Plan are machines of which the provider's plan is needed.
	Plan []Key
	// After is when to look again though nothing has changed; 0 is not before.
	After time.Duration
}

// A SetUpdate is a set to be written, and why.
type SetUpdate struct {
	Set    Set
	Reason string
}

// A Move is a machine as it is to be written, with the Version that was looked at, and why. What a template does not name stays.
type Move struct {
	Machine Machine
	From    Owner
	Reason  string
}
