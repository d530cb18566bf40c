// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"time"

	"github.com/belayproject/belay/rollout/protocol"
)

// Plan decides what to do now, and says of every other node why it waits. It returns an error for an invalid policy, and for one that
// names nodes that are not there when the rollout begins; then nothing is decided. A rollout under way, and one that is superseded, goes on without them, and
// says so in [Decisions].Findings.
//
// What it decides can be carried out in any order after the ledger and the progress were stored, or not at all: the next Plan
// decides on what has become of it.
func Plan(s Snapshot, policy Policy, now time.Time) (Decisions, error) {
	return new(Planner).Plan(s, policy, now)
}

// run decides.
func (p *plan) run() error {
	if err := p.begin(); err != nil {
		return err
	}
	p.heed()
	p.observe()
	p.relapses()
	p.loans()
	p.retire()
	p.detect()
	p.fence()
	p.classify()
	p.advance()
	p.fence() // what was found while advancing
	p.steer()
	p.retry()
	p.admit()
	p.prefetch()
	return nil
}

// A plan is one run of Plan.
type plan struct {
	policy   *Policy
	snapshot *Snapshot
	now      time.Time
	mem      *scratch
	stages   []Stage
	cycle    time.Duration

	// ledger and progress are what is decided so far; copied says that the progress has its own map.
	ledger   protocol.Draft
	progress Progress
	copied   bool
	appended bool            // likewise of its outcomes
	fallen   map[string]bool // the UIDs of nodes whose success was withdrawn

	// nodes are those of the domain by name, byUID are those of them that have a slot or are remembered.
	nodes   []member
	byUID   map[string]int32
	keyOf   keyNames
	keyed   map[setOf][]string // see [plan.keys]
	zones   []string
	targets []aim // by group
	sizes   sizes
	found   int     // how many of the nodes that groups name are there
	missed  []error // see [plan.absent]; nil if nobody has asked yet
	flights []flight
	// acknowledged is the UID of the node whose slot was freed by request.
	acknowledged string
	// haltWhy is what [plan.halt] said last, holdWhy what keeps the stage under way from being passed.
	haltWhy, holdWhy *Why
	taken            []bool // by stage and group
	// blast is the worst case, once it is known; excess says that it is too bad, asked that this is known.
	load    []StageLoad
	blast   *Blast
	excess  *Why
	asked   bool
	ordered []int32
	limits  limits
	after   time.Duration
	// before is what a simulation knows from the plan before, of the same nodes.
	before *known
}

// A known is what does not change between the plans of a simulation.
type known struct {
	index   map[string]int32 // all members by UID
	ordered []int32          // the last order: it is near to the next one
}

// A member is a node of the domain, as far as it is known what to do with it.
type member struct {
	node    *Node
	why     *Why
	flight  int32 // -1 for none
	zone    int32
	group   int16 // -1 for none
	class   category
	serial  bool
	canary  bool
	joined  bool
	other   bool // another rollout has its slot
	retried bool // it has failed before
	do      step
}

// A step is what is to be done with a node that has no slot of this rollout yet.
type step uint8

const (
	stepNone step = iota
	stepAdmit
	stepStage
)

// slotted reports whether the node has a slot, of this rollout or another one.
func (m *member) slotted() bool { return m.flight >= 0 || m.other }

func (m *member) shadow() protocol.Shadow {
	if m.node.Shadow == nil {
		return protocol.Shadow{Node: m.node.Name, UID: m.node.UID}
	}
	return *m.node.Shadow
}

func newPlan(s *Snapshot, policy *Policy, now time.Time, mem *scratch) *plan {
	p := &plan{policy: policy, snapshot: s, now: now.Round(0), mem: mem, stages: policy.Stages, ledger: s.Ledger.Draft(), progress: s.Progress}
	if len(p.stages) == 0 {
		p.stages = []Stage{{}}
	}
	p.cycle = cycleOf(policy.Cycle, s.Progress.Cycles)
	p.aim()
	p.take()
	p.gather()
	p.assign()
	return p
}

// gather sorts the nodes and finds out what belongs to which: all that the names, the labels and the policy say.
func (p *plan) gather() {
	p.line()
	g, zones := p.grouper(), map[string]int32{}
	for i := range p.nodes {
		m := &p.nodes[i]
		n := m.node
		m.group, m.serial, m.canary = g.group(n), p.isSerial(n), isCanary(n)
		zone := n.Labels[zoneLabel]
		number, known := zones[zone]
		if !known {
			number = int32(len(p.zones))
			zones[zone], p.zones = number, append(p.zones, zone)
		}
		m.zone = number
	}
	p.found = g.found
	p.name()
	p.count()
}

// line puts the nodes in the order of their names.
func (p *plan) line() {
	p.nodes = reuse(&p.mem.nodes, len(p.snapshot.Nodes))
	if p.mem.names.place(p.nodes, p.snapshot.Nodes) {
		return
	}
	for i := range p.nodes {
		p.nodes[i] = member{node: &p.snapshot.Nodes[i], flight: -1}
	}
	slices.SortFunc(p.nodes, compareNames)
	p.mem.names.learn(p.nodes)
}

// assign finds the nodes that have a slot or are remembered.
func (p *plan) assign() {
	p.byUID = reuseMap(&p.mem.byUID, max(len(p.ledger.Slots), len(p.progress.Nodes))) // mostly the same
	for uid := range p.progress.Nodes {
		p.byUID[uid] = -1
	}
	for i := range p.ledger.Slots {
		p.byUID[p.ledger.Slots[i].UID] = -1
	}
	p.look()
	for i := range p.ledger.Slots {
		if m := p.byUID[p.ledger.Slots[i].UID]; m >= 0 && p.ledger.Slots[i].Rollout != p.policy.UID {
			p.nodes[m].other = true
		}
	}
}

// look finds the members of the UIDs that are asked for.
func (p *plan) look() {
	if p.before != nil {
		for uid := range p.byUID {
			if i, here := p.before.index[uid]; here {
				p.byUID[uid] = i
			}
		}
		return
	}
	for i := range p.nodes {
		if _, asked := p.byUID[p.nodes[i].node.UID]; asked {
			p.byUID[p.nodes[i].node.UID] = int32(i)
		}
	}
}

// find returns the member with a UID that has a slot or is remembered.
func (p *plan) find(uid string) (int32, bool) {
	i, ok := p.byUID[uid]
	return i, ok && i >= 0
}

// remember puts a node into the progress, which has its own map from then on.
func (p *plan) remember(uid string, e NodeProgress) {
	p.own()
	p.progress.Nodes[uid] = e
}

func (p *plan) forget(uid string) {
	p.own()
	delete(p.progress.Nodes, uid)
}

func (p *plan) own() {
	if p.copied {
		return
	}
	p.copied = true
	if p.progress.Nodes == nil {
		p.progress.Nodes = map[string]NodeProgress{}
		return
	}
	p.progress.Nodes = maps.Clone(p.progress.Nodes)
}

// remembered are the UIDs of the nodes of the progress, in order. The next call uses their memory again.
func (p *plan) remembered() []string {
	uids := reuse(&p.mem.uids, len(p.progress.Nodes))[:0]
	for uid := range p.progress.Nodes {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	return uids
}

// again asks to be called again in d, if that is not to happen sooner.
func (p *plan) again(d time.Duration) {
	if d > 0 && (p.after == 0 || d < p.after) {
		p.after = d
	}
}
