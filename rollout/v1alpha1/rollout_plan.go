// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// GroupAll is the name of the group that spec.selector stands for.
const GroupAll = "all"

// Group is nodes that belong together. Exactly one of selector and nodes must be set.
//
// +kubebuilder:validation:XValidation:rule="has(self.selector) != has(self.nodes)",message="a group must have exactly one of selector and nodes"
type Group struct {
	// name of the group.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// selector selects nodes by label; {} selects all that are in no group before.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// nodes are names of nodes. Each must be there when the rollout begins, and is in one group only.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Nodes []string `json:"nodes,omitempty"`

	// revision is the group's own. Absent means that of the rollout.
	// +optional
	Revision *PinnedRevision `json:"revision,omitempty"`
}

// RollbackPlan is how the nodes are brought back, where that is not the way they came: an old revision may need no canary, and allow haste. An empty one
// is a single stage of all nodes, under the caps of the rollout.
type RollbackPlan struct {
	// stages are passed in order, in place of those of the rollout. Absent means one stage of all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, b.name == a.name))",message="each stage must have a name of its own"
	Stages []Stage `json:"stages,omitempty"`

	// caps bind in place of those of the rollout. Absent means those of the rollout.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Caps []Cap `json:"caps,omitempty"`
}

// Stage is a part of a rollout.
type Stage struct {
	// name of the stage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// groups are the names of the groups that take part. Absent means all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, b == a))",message="a stage must name each group once"
	Groups []string `json:"groups,omitempty"`

	// size is how many nodes of these groups have had their turn when the stage is over, those of earlier stages among them: a number, or a
	// percentage, rounded down and at least 1. Absent means all.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 2147483647 : self.matches('^(100|[1-9][0-9]?)%$')",message="size must be a number of nodes from 1 on, or a percentage from 1% to 100%"
	Size *intstr.IntOrString `json:"size,omitempty"`

	// caps bind while the stage goes on, besides those of the rollout.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Caps []Cap `json:"caps,omitempty"`

	// soak is how long nothing may go wrong after its last node, for example "2h".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 2h, and not negative"
	Soak *metav1.Duration `json:"soak,omitempty"`

	// gates name what has to allow the stage to be passed when it is over, besides the gates of the whole fleet: gates of the controller that are for stages.
	// One that the controller does not know does not allow it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Gates []string `json:"gates,omitempty"`

	// approval: somebody has to promote the rollout past this stage, with the verb Promote.
	// +optional
	Approval bool `json:"approval,omitempty"`
}

// Cap is how many nodes may be disrupted at a time. It counts the slots of all rollouts of the domain, and nodes that are away for other reasons.
//
// +kubebuilder:validation:XValidation:rule="!has(self.key) || self.scope != 'Total'",message="a cap with scope Total must have no key: it counts all nodes of the domain"
// +kubebuilder:validation:XValidation:rule="!has(self.key) || self.scope != 'Class' || self.key in ['Intrusive', 'NonIntrusive']",message="the key of a cap with scope Class must be Intrusive or NonIntrusive; without a key it counts each of them"
type Cap struct {
	// scope is what it counts.
	// +required
	Scope Scope `json:"scope"`

	// key is the group, zone or class that it counts. Absent means each of them by itself.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// max is the number, or the percentage, rounded down and at least 1: of all nodes of the domain for Total and Zone, of the selected ones
	// for Group and Class.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 2147483647 : self.matches('^(100|[1-9][0-9]?)%$')",message="max must be a number of nodes from 1 on, or a percentage from 1% to 100%; to have none begun, pause the rollout"
	Max intstr.IntOrString `json:"max"`
}

// Checks are made before anything is begun. With Enforce nothing is begun that a check is against, with Warn it only says so.
type Checks struct {
	// controlPlane: the domain has nodes that serial selects. Absent means that it is not checked.
	// +optional
	ControlPlane CheckMode `json:"controlPlane,omitempty"`

	// quorum: with one more of those nodes away, a majority of them is available. Absent means Enforce, and Warn with loseQuorum, beside which Enforce
	// is refused.
	// +optional
	Quorum CheckMode `json:"quorum,omitempty"`

	// data: no pod has to go against its budget, as stuckDrain Force does with an intrusive revision. Absent means that it is not checked.
	// +optional
	Data CheckMode `json:"data,omitempty"`

	// caps: each zone that a cap names has a node of the domain: a name that is misspelt keeps nothing back. Absent means Enforce
	// until the rollout has begun, and Warn after that; Warn is for zones that may be empty at times.
	// +optional
	Caps CheckMode `json:"caps,omitempty"`
}

// CheckMode is what a check does when it finds something.
//
// +kubebuilder:validation:Enum=Enforce;Warn
type CheckMode string

// Scope is what a cap counts.
//
// +kubebuilder:validation:Enum=Total;Group;Zone;Class
type Scope string

// Window is a time in which nodes may be begun, by the wall clock of a time zone. One that closes before it opens crosses midnight.
//
// +kubebuilder:validation:XValidation:rule="self.open != self.close",message="a window must close at another time than it opens; a whole day is from 00:00 to 24:00"
type Window struct {
	// days are those on which it opens. Absent means every day.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	Days []Day `json:"days,omitempty"`

	// open is a time of day from "00:00" to "23:59".
	// +required
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="open must be a time of day from 00:00 to 23:59, in the form HH:MM"
	Open string `json:"open"`

	// close is a time of day from "00:01" to "24:00".
	// +required
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$') && self != '00:00'",message="close must be a time of day from 00:01 to 24:00, in the form HH:MM"
	Close string `json:"close"`

	// zone is the IANA name of the time zone, for example "Europe/Berlin". Absent means UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",message="zone must be the name of a time zone such as Europe/Berlin, or absent for UTC"
	Zone string `json:"zone,omitempty"`
}

// Day is a day of the week.
//
// +kubebuilder:validation:Enum=Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday
type Day string

// NodeSet is nodes by label and by name: those that match either.
//
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.nodes)",message="critical must have a selector, nodes or both; leave it out for none"
type NodeSet struct {
	// selector selects nodes by label; {} selects all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// nodes are names of nodes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Nodes []string `json:"nodes,omitempty"`
}

// Detector says when a rollout has failed. Exactly one of its fields must be set.
//
// +kubebuilder:validation:XValidation:rule="has(self.cusum) != has(self.failures)",message="a detector must have exactly one of cusum and failures; to have no detector, leave the list empty"
type Detector struct {
	// cusum tells a bad revision from a good one by the order in which nodes fail and succeed. {} means its default rates.
	// +optional
	CUSUM *CUSUM `json:"cusum,omitempty"`

	// failures counts.
	// +optional
	Failures *Failures `json:"failures,omitempty"`
}

// CUSUM is a cumulative sum test on the outcomes.
//
// +kubebuilder:validation:XValidation:rule="double((has(self.good) ? self.good : '1%').split('%')[0]) < double((has(self.bad) ? self.bad : '10%').split('%')[0])",message="good must be below bad; without them they are 1% and 10%"
type CUSUM struct {
	// good is the share of nodes that fail with a good revision: above 0%, and below bad. Absent means "1%".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([1-9][0-9]?([.][0-9]+)?|0[.][0-9]*[1-9][0-9]*)%$')",message="good must be a percentage above 0% and below 100%, such as 0.5%"
	Good string `json:"good,omitempty"`

	// bad is the share of nodes that fail with a bad one. Absent means "10%".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([1-9][0-9]?([.][0-9]+)?|0[.][0-9]*[1-9][0-9]*|100)%$')",message="bad must be a percentage above 0% and up to 100%, such as 10%"
	Bad string `json:"bad,omitempty"`

	// limit is the sum at which it trips: a larger one stops fewer good revisions, and lets a bad one break more nodes. Absent means "9.2".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([1-9][0-9]*([.][0-9]+)?|0[.][0-9]*[1-9][0-9]*)$')",message="limit must be a number above 0, such as 9.2"
	Limit string `json:"limit,omitempty"`
}

// Failures counts nodes that have failed.
//
// +kubebuilder:validation:XValidation:rule="(type(self.at) == string) == has(self.of)",message="of must be set for a percentage, and must not be set for a number"
// +kubebuilder:validation:XValidation:rule="!has(self.after) || (has(self.of) && self.of == 'Attempted')",message="after goes with of: Attempted only"
type Failures struct {
	// at is the number of failed nodes that stops the rollout, or the percentage, rounded up and at least 1.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 2147483647 : self.matches('^(100|[1-9][0-9]?)%$')",message="at must be a number of nodes from 1 on, or a percentage from 1% to 100%"
	At intstr.IntOrString `json:"at"`

	// of is what a percentage is of: all selected nodes, or those that have succeeded or failed so far.
	// +optional
	Of Denominator `json:"of,omitempty"`

	// after is how many nodes have to be attempted before a percentage of them says anything. Absent means 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	After int32 `json:"after,omitempty"`
}

// Denominator is what a percentage of failures is of.
//
// +kubebuilder:validation:Enum=Nodes;Attempted
type Denominator string

// Verb is what somebody asks for.
//
// +kubebuilder:validation:XValidation:rule="self.request != oldSelf.request || self == oldSelf",message="what was asked for must not change: use a request ID that was not used before"
// +kubebuilder:validation:XValidation:rule="has(self.node) == (self.do == 'Acknowledge')",message="node must be set for Acknowledge, and for nothing else"
// +kubebuilder:validation:XValidation:rule="has(self.number) == (self.do == 'Rollback')",message="number must be set for Rollback, and for nothing else: it is that of an entry of status.history"
type Verb struct {
	// request is the ID of the request. IDs must not be used again.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Request string `json:"request"`

	// do is what is asked for.
	//
	// Pause: nothing more is begun, what is under way ends. Resume ends a pause or an abort. Abort: what has not begun to apply is undone.
	// Accept: the failures that froze the rollout are accepted. Promote: the stage is passed without the rest of its soak, gate and approval.
	// Acknowledge: the capacity of a broken node is given up. Rollback: the nodes are brought back to what an entry of the history names,
	// until the spec names other revisions; what was paused or aborted stays so until it is resumed.
	// +required
	Do Do `json:"do"`

	// node is the name of the node of an Acknowledge.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// number is that of the entry of status.history to go back to.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number,omitempty"`
}

// Do is a verb.
//
// +kubebuilder:validation:Enum=Pause;Resume;Abort;Accept;Promote;Acknowledge;Rollback
type Do string

// DoRollback is the one verb that is about the history; [HeedRollback] carries it out. The others are those of package rollout.
const DoRollback Do = "Rollback"
