// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A Policy is what somebody wants of a rollout.
type Policy struct {
	// UID names the rollout in the ledger.
	UID string
	// Target is the revision that every selected node should get.
	Target Revision
	// Completed is the last revision of which a rollout was completed: nodes that join meanwhile get it first, and nodes that the target has
	// broken get it last. One without a name means none.
	Completed Revision
	// Groups are the nodes, by selector or by name, 4096 groups at most. A node belongs to the first group that it matches, and to none if there is no such.
	Groups []Group
	// Stages are passed in order: the next one begins when the gate of the one before has passed. None means one stage of all groups;
	// 1024 are the most.
	Stages []Stage
	// Caps bind at the same time; the strictest decides. Unless one of them has no key, as each of the scope [Total], one node at a time besides: a list
	// that names some zones, groups or classes says nothing of the others.
	Caps []Cap
	// Order says which of the nodes of a stage that may go is next. Nil means: the node of the
	// controller itself last, broken nodes first, then canaries, then zone by zone.
	Order Order
	// Windows are when nodes may be begun. None means always.
	Windows []Window
	// Cycle is how long a node takes from its grant to its end; a node is begun only if that fits before its window closes. Zero
	// means the 95th percentile of the cycles of this rollout so far, and 10 minutes before there are 5.
	Cycle time.Duration
	// Detectors stop the rollout. Nil means the default ones; to have none takes an empty list.
	Detectors []Detector
	// Critical selects nodes of which no single one may fail: each failed attempt freezes the rollout, and so does one that falls back later. Nil means none.
	Critical labels.Selector
	// Serial selects nodes that go strictly one at a time, whatever the caps say: the control plane. Nil means those with the label
	// node-role.kubernetes.io/control-plane. They count over the whole domain.
	Serial labels.Selector
	// LoseQuorum allows to begin a serial node though fewer than a majority of them stay available by that: what a control plane of one
	// or two nodes takes. It is [Warn] for that check.
	LoseQuorum bool
	// Checks are what is looked at beforehand.
	Checks Checks
	// Attempts is how many failures of the revision on one node are enough. Zero means 3. What was not begun, and what was undone, is no
	// failure and has no limit. A node that does not run the revision any more after its success has failed; what it did before it has run it for a day does
	// not count any more.
	Attempts int
	// RetryAfter is how long a node rests at most after its first failure; each further one doubles that, up to an hour, and the rest is
	// jittered in full, by node and attempt. Zero means 1 minute.
	RetryAfter time.Duration
	// CommitWithin, DrainWithin, ApplyWithin and VerifyWithin are the deadlines of the phases, by the controller's clock. Zero means
	// 5 minutes, 1 hour, 30 minutes and 30 minutes.
	CommitWithin, DrainWithin, ApplyWithin, VerifyWithin time.Duration
	// StuckDrain is what happens to a node whose drain has passed its deadline. Empty: the node stays cordoned and keeps its slot.
	StuckDrain StuckDrain
	// MaxBroken refuses a rollout of which more nodes could be broken before it stops: see [Bound]. Nil means no limit.
	MaxBroken *intstr.IntOrString
	// Prefetch lets nodes fetch the revision ahead of their turn, that many at a time. Nil means none.
	Prefetch *intstr.IntOrString
	// Verb is what somebody has asked for last.
	Verb Verb
	// Unfollowed says that this stands for a policy that can't be followed, of a rollout that is stopped: which nodes that selects is not known, and each
	// attempt with one of the targets counts as what it is evidence of.
	Unfollowed bool
}

// An Order says which of two nodes that may both go is the first: negative for a, positive for b, zero for either. It must not change its
// arguments nor depend on anything else. Ties are broken by group and name. Nodes that have failed wait behind fresh ones, whatever it says.
type Order func(a, b *Node) int

// A Detector says when a rollout has failed.
type Detector interface {
	// Name names it, for people and for the closure of the ledger.
	Name() string
	// Trips looks at the outcomes so far, one for each node, in order, of a selection of so many nodes.
	Trips(outcomes []Outcome, nodes int) (reason string, tripped bool)
}

// A Revision is something that nodes are brought to. It never changes.
type Revision struct {
	// Name and Digest name it; a node that runs another digest under the same name does not run it.
	Name, Digest string
	// Irreversible: no node goes back from it.
	Irreversible bool
	// Class is how much it disturbs a node.
	Class Class
	// Created and MinAge: no node is begun before the revision is that old.
	Created time.Time
	MinAge  time.Duration
}

// A Class is how much a revision disturbs a node.
type Class string

// Classes.
const (
	// Intrusive: the node is cordoned and drained first. It is what an empty Class means.
	Intrusive Class = "Intrusive"
	// NonIntrusive: the work stays on the node. It is neither cordoned nor drained, and counts for the caps of its own class.
	NonIntrusive Class = "NonIntrusive"
)

// A Group is nodes that belong together.
type Group struct {
	Name string
	// Selector or Nodes say which; exactly one of them.
	Selector labels.Selector
	Nodes    []string
	// Target is the group's own revision, and Completed the last one before it; a nil Target means the policy's two.
	Target, Completed *Revision
}

// A Stage is a part of a rollout.
type Stage struct {
	Name string
	// Groups are the names of the groups that take part; none means all.
	Groups []string
	// Size is how many nodes of these groups have had their turn when the stage is over, those of earlier stages among them: a canary. Nil
	// means all. A node that cannot be touched is passed over for another one.
	Size *intstr.IntOrString
	// Caps bind while the stage goes on, besides those of the policy.
	Caps []Cap
	// Soak is how long nothing may go wrong after its last node, before the gate is asked.
	Soak time.Duration
	// Gates name what has to allow the stage to be passed when it is over, besides the gates of the whole fleet: see [Verdict].ForStages. One of which there
	// is no verdict does not allow it.
	Gates []string
	// Approval: somebody has to promote the rollout past this stage, besides the gates.
	Approval bool
}

// A Cap is how many nodes may be disrupted at a time. It counts the slots of all rollouts, and the nodes that are away for other reasons.
type Cap struct {
	// Scope is what it counts.
	Scope Scope
	// Key is the group, zone or class that it counts; empty means each of them by itself.
	Key string
	// Max is the number, or the percentage of the nodes in scope: of the whole domain for [Total] and [ByZone], of the selected nodes for
	// [ByGroup] and [ByClass].
	Max intstr.IntOrString
}

// A Scope is what a cap counts.
type Scope string

// Scopes.
const (
	Total   Scope = "Total"
	ByGroup Scope = "Group"
	ByZone  Scope = "Zone"
	ByClass Scope = "Class"
)

// A Window is a time in which nodes may be begun: days of the week and times of day in a time zone. One that ends before it opens crosses
// midnight. On the days on which clocks change it opens and closes by the wall clock of its zone. Windows that touch are one.
type Window struct {
	// Days are those on which it opens; none means every day.
	Days []time.Weekday
	// Open and Close are times of day, as the duration since midnight on a clock: Open below 24 h, Close above 0 and up to 24 h. A time that
	// the clock shows twice is the first one; of one that it skips, the moment of the change.
	Open, Close time.Duration
	// Zone is where the clock hangs. Nil means UTC.
	Zone *time.Location
}

// StuckDrain is what happens to a node that cannot be emptied.
type StuckDrain string

// Answers to a stuck drain.
const (
	// holdDrain: it stays cordoned and keeps its slot, and the rollout says which pod and budget are in the way.
	holdDrain StuckDrain = "Hold"
	// UndoDrain: it is given back, and tried again later.
	UndoDrain StuckDrain = "Undo"
	// ForceDrain: the drain is told to go on past what is in the way.
	ForceDrain StuckDrain = "Force"
)
