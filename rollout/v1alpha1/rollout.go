// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DefaultDomain is the disruption domain of a Rollout that names none.
const DefaultDomain = "default"

// Rollout brings nodes to a revision, and keeps them there: nodes that join get it too. It stays when it is completed; what is to be rolled out
// next is another revision in the same Rollout.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=ro,categories=belay
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Where the rollout stands"
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.status.stage.name`,description="Stage under way"
// +kubebuilder:printcolumn:name="Done",type=string,JSONPath=`.status.done`,description="Nodes that run their revision, of those that are selected"
// +kubebuilder:printcolumn:name="In-Flight",type=integer,JSONPath=`.status.counts.inFlight`,description="Nodes that may be disrupted now"
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`,description="Nodes that have failed, are broken or are given up"
// +kubebuilder:printcolumn:name="Waiting-For",type=string,JSONPath=`.status.waiting[0].reason`,description="What most of the others wait for"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.revision.name`,description="What the nodes are brought to"
// +kubebuilder:printcolumn:name="End",type=string,priority=1,JSONPath=`.status.expectedEnd`,description="When it should be over"
// +kubebuilder:printcolumn:name="Refused",type=string,priority=1,JSONPath=`.status.refusal`,description="Why the last request was not carried out"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`,description="Where it stands, in words"
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.progress) || (has(self.status) && has(self.status.progress))",message="status.progress must stay: it is what the rollout remembers of its nodes"
type Rollout struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what somebody wants.
	// +required
	Spec RolloutSpec `json:"spec"`

	// status is how far that is. The controller alone writes it.
	// +optional
	Status RolloutStatus `json:"status,omitempty"`
}

// RolloutSpec is what somebody wants of a rollout.
//
// +kubebuilder:validation:XValidation:rule="has(self.selector) != has(self.groups)",message="exactly one of selector and groups must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.stages) || self.stages.all(s, !has(s.groups) || s.groups.all(n, has(self.groups) && self.groups.exists(g, g.name == n)))",message="groups of a stage must be names of spec.groups"
// +kubebuilder:validation:XValidation:rule="!has(self.stages) || (has(self.groups) ? self.groups.all(g, self.stages.exists(s, !has(s.size) && (!has(s.groups) || g.name in s.groups))) : self.stages.exists(s, !has(s.size)))",message="each group must be in a stage without a size, so that all of its nodes have their turn: leave out the size of the last stage"
// +kubebuilder:validation:XValidation:rule="!has(self.caps) || self.caps.all(c, c.scope != 'Group' || !has(c.key) || (has(self.groups) && self.groups.exists(g, g.name == c.key)))",message="the key of a cap with scope Group must be the name of one of spec.groups; without a key it counts each of them"
type RolloutSpec struct {
	// domain is the name of the DisruptionLedger on which all caps are decided. Rollouts that share nodes must share it. It must not change.
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="domain must be the name of a DisruptionLedger: lower case letters, digits, dashes and dots"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="domain must not change: create another Rollout"
	Domain string `json:"domain,omitempty"`

	// revision is what every selected node should get, but for groups that have their own. Another one supersedes the rollout under way.
	// +required
	Revision PinnedRevision `json:"revision"`

	// selector selects nodes by label; {} selects all. They are one group, whose name is "all".
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// groups are the nodes, by selector or by name. A node belongs to the first group that it matches.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, b.name == a.name))",message="each group must have a name of its own"
	Groups []Group `json:"groups,omitempty"`

	// stages are passed in order: the next one begins when the one before is over, has soaked, and was approved. Absent means one stage of all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, b.name == a.name))",message="each stage must have a name of its own"
	Stages []Stage `json:"stages,omitempty"`

	// rollback is another plan for the way back, which is followed as long as the nodes are brought back to an entry of the history. Absent means the
	// stages and caps of the rollout.
	// +optional
	Rollback *RollbackPlan `json:"rollback,omitempty"`

	// caps bind at the same time; the strictest decides. Absent means one node at a time, and so it is, besides, where each of them has a key: such a list
	// says nothing of the other nodes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Caps []Cap `json:"caps,omitempty"`

	// order says which of the nodes of a stage that may go is the next. Absent means Default, and Rollback as long as the nodes are brought back to an
	// entry of the history.
	// +optional
	Order Order `json:"order,omitempty"`

	// windows are when nodes may be begun. Absent means always.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Windows []Window `json:"windows,omitempty"`

	// cycle is how long a node takes from its grant to its end, for example "10m"; a node is begun only if that fits before its window closes.
	// Absent means what 19 of 20 nodes have taken so far.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 10m, above 0"
	Cycle *metav1.Duration `json:"cycle,omitempty"`

	// detectors stop the rollout when the revision is bad. Absent means one that compares 1% of failing nodes with 10%. An empty list turns
	// detection off.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Detectors []Detector `json:"detectors,omitzero"`

	// critical are nodes of which no single one may fail. Absent means none.
	// +optional
	Critical *NodeSet `json:"critical,omitempty"`

	// serial selects nodes that go strictly one at a time, over all rollouts of the domain. Absent means those with the label
	// node-role.kubernetes.io/control-plane.
	// +optional
	Serial *metav1.LabelSelector `json:"serial,omitempty"`

	// loseQuorum allows to begin a serial node though fewer than a majority of them stay available: what a control plane of one or two takes.
	// +optional
	LoseQuorum bool `json:"loseQuorum,omitempty"`

	// checks are what is looked at beforehand, by the spec and the nodes alone. What they find is in the message of the status.
	// +optional
	Checks *Checks `json:"checks,omitempty"`

	// attempts is how many failures of the revision on one node are enough. Absent means 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Attempts int32 `json:"attempts,omitempty"`

	// retryAfter is how long a node rests at most after its first failure; each further one doubles that, up to an hour. Absent means "1m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 1m, above 0"
	RetryAfter *metav1.Duration `json:"retryAfter,omitempty"`

	// deadlines are how long the parts of an attempt may take.
	// +optional
	Deadlines *Deadlines `json:"deadlines,omitempty"`

	// stuckDrain is what happens to a node that is not empty by the deadline. Absent means Hold.
	// +optional
	StuckDrain StuckDrain `json:"stuckDrain,omitempty"`

	// maxBroken refuses to begin a rollout of which more nodes could be broken before it stops by itself: a number, or a percentage of the selected
	// nodes, rounded down and at least 1. Absent means no limit.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 2147483647 : self.matches('^(100|[1-9][0-9]?)%$')",message="maxBroken must be a number of nodes from 1 on, or a percentage from 1% to 100%"
	MaxBroken *intstr.IntOrString `json:"maxBroken,omitempty"`

	// prefetch lets nodes fetch the revision ahead of their turn, that many at a time: a number, or a percentage of the selected nodes. Absent
	// means none.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 2147483647 : self.matches('^(100|[1-9][0-9]?)%$')",message="prefetch must be a number of nodes from 1 on, or a percentage from 1% to 100%"
	Prefetch *intstr.IntOrString `json:"prefetch,omitempty"`

	// pauseLimit is how long a rollout may be paused until its condition Stalled says so. Absent means "24h".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 24h, above 0"
	PauseLimit *metav1.Duration `json:"pauseLimit,omitempty"`

	// historyLimit is how many entries status.history has at most. Absent means 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	HistoryLimit int32 `json:"historyLimit,omitempty"`

	// verb is what somebody asks for now. It is done once for each request, and may stay: status.handledRequest names the last one that was looked
	// at, status.refusal says why it was not carried out.
	// +optional
	Verb *Verb `json:"verb,omitempty"`
}

// PinnedRevision names a Revision and its content. A Revision of that name with another digest is not the one that is meant.
type PinnedRevision struct {
	// name of the Revision.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^@]+$`
	Name string `json:"name"`

	// digest of its content, as in its spec.
	// +required
	// +kubebuilder:validation:Pattern=`^sha256:[a-f0-9]{64}$`
	Digest string `json:"digest"`
}

// Deadlines are how long the parts of an attempt may take, by the controller's clock.
type Deadlines struct {
	// commit is for the agent's answer to a grant; then the grant is taken back. Absent means "5m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 5m, above 0"
	Commit *metav1.Duration `json:"commit,omitempty"`

	// drain is for the drain; then stuckDrain decides. Absent means "1h".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 1h, above 0"
	Drain *metav1.Duration `json:"drain,omitempty"`

	// apply is for the change itself; then the node is suspect, which is a failure. Absent means "30m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 30m, above 0"
	Apply *metav1.Duration `json:"apply,omitempty"`

	// verify is for the proof that the node is well; then it is suspect, which is a failure. Absent means "30m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 30m, above 0"
	Verify *metav1.Duration `json:"verify,omitempty"`
}

// StuckDrain is what happens to a node that cannot be emptied. Hold: it stays cordoned and keeps its slot, and the rollout says what is in the
// way. Undo: it is given back, and tried again later. Force: the drain goes on past what is in the way.
//
// +kubebuilder:validation:Enum=Hold;Undo;Force
type StuckDrain string

// Order says which node is the next. The node of the controller itself is the last, and nodes that have failed wait behind fresh ones, whatever it is.
// Default: broken nodes first, then those with the label belay.dev/canary, then zone by zone. Rollback: broken nodes first, then those that were touched
// last, then as Default.
//
// +kubebuilder:validation:Enum=Default;Rollback
type Order string

// Orders.
const (
	OrderDefault  Order = "Default"
	OrderRollback Order = "Rollback"
)

// RolloutList is a list of Rollouts.
//
// +kubebuilder:object:root=true
type RolloutList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rollout `json:"items"`
}
