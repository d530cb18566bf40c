// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// planMargin is how long after its grace period a pod may still be there before somebody should look: the kubelet's last status
	// update and the server's deletion take their time.
	planMargin = 30 * time.Second
	// planDaemonTier is after every tier that a rule may have.
	planDaemonTier = math.MaxInt32
	// planBounces is how often an owner's pods may come back before they are left alone.
	planBounces = 2
)

// Plan decides, for every pod on the nodes of s, whether it leaves now and if not, why. It is pure: the same arguments give the same
// result, in the same order. The drain itself runs on it, so that a dry run is what would happen.
func Plan(s Snapshot, p Policy, now time.Time) Result {
	pl := newPlanner(&s, &p, now)
	pl.budgets = indexBudgets(&s, now)
	passes := make([]nodePass, len(s.Nodes))
	for i := range passes {
		passes[i].begin(pl, &s.Nodes[i])
	}
	sharePlan(passes)
	r := Result{Nodes: make([]NodePlan, len(passes))}
	for i := range passes {
		r.Nodes[i] = passes[i].finish()
	}
	r.Budgets, r.Rounds = planRounds(&pl.budgets, r.Nodes)
	return r
}

// A planner holds what all decisions of one Plan share.
type planner struct {
	s       *Snapshot
	p       *Policy
	now     time.Time
	rules   []planRule
	tiers   []int32
	budgets planBudgets
	windows planWindows
}

func newPlanner(s *Snapshot, p *Policy, now time.Time) *planner {
	return &planner{s: s, p: p, now: now, rules: compileRules(p.Rules), tiers: policyTiers(p), windows: planWindows(p.Windows)}
}

// A nodePass is the work on one node.
type nodePass struct {
	*planner
	view        *NodeView
	unreachable bool
	ladder      planLadder
	work        []podWork
	remaining   int
	next        time.Time
}

// A podWork is a decision in the making.
type podWork struct {
	PodPlan
	pod      *corev1.Pod
	behavior planBehavior
	stage    workStage
	hookDone bool // a responder has evacuated it: nothing is left to be protected
	fresh    bool // the responder has not been asked yet
	crowded  bool // more than one budget, and the server would look
	budget   *planBudget
	gated    bool      // an earlier tier is still there
	ladder   bool      // the ladder is for it
	urgent   bool      // a deletion waits for its eviction,
	deleteAt time.Time // until then, once that was refused
}

// A workStage is how far the decision about a pod has come.
type workStage uint8

const (
	stageDecided workStage = iota
	stageOpen              // nothing but obstacles, order, budgets and answers of the server stand in its way
	stageBudget            // needs a share of its budget
)

func (w *podWork) decide(a Action, r Reason, message string) {
	w.Action, w.Reason, w.Message, w.stage = a, r, message, stageDecided
}

// begin takes the decisions that need no other node.
func (n *nodePass) begin(pl *planner, v *NodeView) {
	n.planner, n.view = pl, v
	n.unreachable = nodeUnreachable(v.Node)
	n.ladder = ladderOf(v, pl.p.Escalation, pl.now)
	n.work = make([]podWork, len(v.Pods))
	for i, pod := range v.Pods {
		w := &n.work[i]
		w.pod, w.PodRef = pod, refOf(pod)
		n.judge(w)
		if w.Action != Skip {
			n.remaining++
		}
	}
	slices.SortFunc(n.work, compareWork)
	n.gate()
	for i := range n.work {
		n.settle(&n.work[i])
	}
}

// compareWork orders by tier, then by name; the UID only makes the order total.
func compareWork(a, b podWork) int {
	return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// wake notes a time at which the plan changes by itself.
func (n *nodePass) wake(t time.Time) {
	if t.After(n.now) && (n.next.IsZero() || t.Before(n.next)) {
		n.next = t
	}
}

// sharePlan hands out what the budgets allow: the node with the fewest pods left first, so that nodes finish.
func sharePlan(passes []nodePass) {
	order := make([]*nodePass, len(passes))
	for i := range passes {
		order[i] = &passes[i]
	}
	slices.SortStableFunc(order, func(a, b *nodePass) int { return cmp.Compare(a.remaining, b.remaining) })
	for _, n := range order {
		for i := range n.work {
			if w := &n.work[i]; w.stage == stageBudget {
				n.spend(w)
			}
		}
	}
}

// finish applies the windows, announces the ladder, and counts.
func (n *nodePass) finish() NodePlan {
	plan := NodePlan{Node: planNode(n.view), Pods: make([]PodPlan, len(n.work))}
	for i := range n.work {
		w := &n.work[i]
		n.announce(w)
		n.confine(w)
		addHookNote(n, w)
		plan.Pods[i] = w.PodPlan
		plan.Counts.add(&w.PodPlan)
	}
	if n.p.Volumes {
		plan.Attached = n.attached()
	}
	plan.Next = n.next
	return plan
}

func (c *Counts) add(p *PodPlan) {
	switch {
	case p.Action == Skip:
		c.addSkipped(p.Reason)
		return
	case p.Action == Evict:
		c.Evictable++
	case p.Action == Block:
		c.Blocked++
	case p.Reason == Terminating:
		c.Terminating++
	default:
		c.Waiting++
	}
	c.Remaining++
}

// addSkipped counts a pod that is not waited for, by why.
func (c *Counts) addSkipped(why Reason) {
	c.Skipped++
	switch why {
	case reasonMirrorPod:
		c.Static++
	case reasonTerminal:
		c.Finished++
	case reasonDaemonSetPod:
		c.DaemonSet++
	case reasonToleratesCordon, reasonBounced:
		c.Tolerating++
	case reasonSkippedByRule:
		c.ByRule++
	}
}

func planNode(v *NodeView) string {
	if v.Node == nil {
		return ""
	}
	return v.Node.Name
}

// planTime writes a time into a message. It is absolute, so that the message stays the same as long as the plan does.
func planTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
