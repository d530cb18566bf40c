// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/protocol"
)

// kept is how many versions of each list can be read.
const kept = 64

// A Cluster is one disruption domain. Make it with [New].
type Cluster struct {
	mu       sync.Mutex
	o        Options
	version  int
	ledger   protocol.Ledger
	ledgerAt int // 0: there is none
	nodes    map[string]controller.Node
	shadows  map[string]shadow
	rollouts map[string]stored
	pods     map[string][]pod // by node
	disks    map[string]protocol.Report
	current  map[string]protocol.Revision // by UID
	behavior map[string]Behavior          // by node
	applied  map[string]int               // by UID and attempt
	updates  map[string]int               // by UID and revision
	made     int
	asked    int // how often somebody has said what is wanted

	pastNodes    [][]controller.Node
	pastShadows  [][]controller.Shadow
	pastRollouts [][]controller.Rollout
	pastLedgers  []ledgerVersion
	writes       map[string]int
	broken       []string
}

// Options are what a Cluster has to hold to.
type Options struct {
	// Caps must hold on every version of the ledger.
	Caps []protocol.Cap
	// Lossy allows nodes without a slot that are not at rest: for tests in which a hand deletes the ledger, or gives capacity up.
	Lossy bool
}

// A Behavior is what is special about a node and its agent. The zero one does what it is told at once, and comes back well.
type Behavior struct {
	// Silent agents do nothing, Refusing ones refuse.
	Silent, Refusing bool
	// Fails says how the agent ends an attempt that brings a revision: empty is well.
	Fails func(revision string) protocol.Event
	// Stuck pods are on the node that no drain gets off without force.
	Stuck bool
	// Sick says why the node is unhealthy, before it is touched.
	Sick string
	// Bare: the pods do not come back.
	Bare bool
}

type shadow struct {
	controller.Shadow
	at int
}

type stored struct {
	controller.Rollout
	at    int
	shown Shown
}

// Shown is what a rollout shows to people.
type Shown struct {
	Phase        rollout.Phase
	Reason       rollout.Reason
	Message      string
	Counts       rollout.Counts
	Acknowledged bool
	// Waiting counts the nodes that wait, by reason.
	Waiting map[rollout.Reason]int
	// Findings are what was found against it.
	Findings []rollout.Finding
	// Blocked are the nodes that wait for their drain, with what is in the way.
	Blocked map[string]string
}

type pod struct{ stuck bool }

// New returns a cluster without nodes.
func New(o Options) *Cluster {
	return &Cluster{
		o: o, nodes: map[string]controller.Node{}, shadows: map[string]shadow{}, rollouts: map[string]stored{}, pods: map[string][]pod{},
		disks: map[string]protocol.Report{}, current: map[string]protocol.Revision{}, behavior: map[string]Behavior{},
		applied: map[string]int{}, updates: map[string]int{}, writes: map[string]int{},
	}
}

// podsPerNode is how many pods a node has.
const podsPerNode = 2

// AddNode registers a Node, which runs the revision.
func (c *Cluster) AddNode(name string, labels map[string]string, runs protocol.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	uid := fmt.Sprintf("uid-%s-%d", name, c.made)
	c.nodes[name] = controller.Node{Name: name, UID: uid, Labels: labels, Created: time.Now(), Ready: true, Version: c.next()}
	c.pods[name] = make([]pod, podsPerNode)
	c.current[uid] = runs
	c.keep()
}

// RemoveNode deletes a Node. Its shadow stays until somebody buries it.
func (c *Cluster) RemoveNode(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodes, name)
	delete(c.pods, name)
	c.keep()
}

// EditNode changes a Node by hand.
func (c *Cluster) EditNode(name string, edit func(*controller.Node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	n.Labels, n.Annotations = maps.Clone(n.Labels), maps.Clone(n.Annotations)
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	edit(&n)
	n.Version = c.next()
	c.nodes[name] = n
	c.keep()
}

// Behave makes b the behavior of a node.
func (c *Cluster) Behave(name string, b Behavior) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behavior[name] = b
	for i := range c.pods[name] {
		c.pods[name][i].stuck = b.Stuck && i == 0
	}
}

// PutRollout creates a rollout, or changes what somebody wants of it.
func (c *Cluster) PutRollout(name string, policy rollout.Policy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	r := c.rollouts[policy.UID]
	r.Name, r.Policy, r.at = name, policy, c.next()
	r.Version = r.at
	c.rollouts[policy.UID] = r
	c.keep()
}

// EditRollout changes a rollout by hand.
func (c *Cluster) EditRollout(uid string, edit func(*controller.Rollout)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	r := c.rollouts[uid]
	edit(&r.Rollout)
	r.at = c.next()
	r.Version = r.at
	c.rollouts[uid] = r
	c.keep()
}

// RemoveRollout removes a rollout with its finalizer, by hand.
func (c *Cluster) RemoveRollout(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	delete(c.rollouts, uid)
	c.keep()
}

// LoseLedger deletes the ledger by hand, LoseShadow a shadow with its finalizer.
func (c *Cluster) LoseLedger() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger, c.ledgerAt = protocol.Ledger{}, 0
	c.keep()
}

// DeleteShadow has somebody delete the shadow of a node: it stays as long as its finalizer does.
func (c *Cluster) DeleteShadow(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sh, ok := c.shadows[node]; ok {
		sh.Deleting = true
		c.put(sh)
		c.keep()
	}
}

// LoseShadow deletes a shadow with its finalizer, by hand.
func (c *Cluster) LoseShadow(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.shadows, node)
	c.keep()
}

// Ledger is the live one.
func (c *Cluster) Ledger() protocol.Ledger {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ledger
}

// Node is the live one; the zero Node if there is none.
func (c *Cluster) Node(name string) controller.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[name]
}

// Shadow is the live one of a node; false if there is none.
func (c *Cluster) Shadow(node string) (controller.Shadow, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sh, ok := c.shadows[node]
	return sh.Shadow, ok
}

// Rollout is the live one with what it shows; false if there is none.
func (c *Cluster) Rollout(uid string) (controller.Rollout, Shown, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.rollouts[uid]
	return r.Rollout, r.shown, ok
}

// FallBack has a node run another revision than its agent has brought it to, as one that was made anew or gives up later what it runs.
func (c *Cluster) FallBack(node string, to protocol.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	uid := c.nodes[node].UID
	c.current[uid] = to
	if sh, ok := c.shadows[node]; ok && sh.UID == uid {
		sh.Runs = to
		c.put(sh)
		c.keep()
	}
}

// Runs counts the nodes that run a revision, by the truth on their disks.
func (c *Cluster) Runs(revision string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, node := range c.nodes {
		if c.current[node.UID].Name == revision {
			n++
		}
	}
	return n
}

// Updates are how often each revision was applied on each Node, by name of the node and revision.
func (c *Cluster) Updates() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.updates)
}

// Writes are how many writes controllers have made, by kind.
func (c *Cluster) Writes() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.writes)
}

// Broken says what was not true that must be, in the order in which it was seen.
func (c *Cluster) Broken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.broken)
}

func (c *Cluster) breaks(format string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

func (c *Cluster) next() int {
	c.version++
	return c.version
}

// keep puts the lists as they are where they can be read later.
func (c *Cluster) keep() {
	nodes := slices.Collect(maps.Values(c.nodes))
	shadows := make([]controller.Shadow, 0, len(c.shadows))
	for _, sh := range c.shadows {
		shadows = append(shadows, sh.Shadow)
	}
	all := make([]controller.Rollout, 0, len(c.rollouts))
	for _, r := range c.rollouts {
		all = append(all, r.Rollout)
	}
	c.pastNodes, c.pastShadows, c.pastRollouts = last(c.pastNodes, nodes), last(c.pastShadows, shadows), last(c.pastRollouts, all)
	c.pastLedgers = last(c.pastLedgers, ledgerVersion{c.ledger, c.ledgerAt})
}

func last[T any](past []T, now T) []T {
	past = append(past, now)
	return past[max(0, len(past)-kept):]
}

// check looks whether all is true that must be.
func (c *Cluster) check(when string) {
	for _, limit := range c.o.Caps {
		if n := c.ledger.Used(limit.Key, nil); n > limit.Max {
			c.breaks("%s: %d slots count for %q, the cap is %d", when, n, limit.Key, limit.Max)
		}
	}
	if c.o.Lossy {
		return
	}
	for _, n := range c.nodes {
		if r := c.shadows[n.Name].Report; !r.Phase.AtRest() && c.ledger.Slot(n.UID) == nil && c.shadows[n.Name].UID == n.UID {
			c.breaks("%s: node %q is %s and has no slot", when, n.Name, r.Phase)
		}
	}
}

// freed looks whether the nodes whose slots the next ledger frees were given back.
func (c *Cluster) freed(next protocol.Ledger) {
	for _, s := range c.ledger.Slots {
		n := c.nodes[s.Node]
		_, held := heldFor(n.Annotations)
		if held && n.UID == s.UID && next.Slot(s.UID) == nil && c.shadows[s.Node].Report.Phase.AtRest() {
			c.breaks("the slot of node %q is freed, and the node is still cordoned", s.Node)
		}
	}
}
