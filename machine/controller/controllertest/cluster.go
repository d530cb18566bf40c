// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/provider"
)

// A Cluster is a workload cluster: its Nodes, their kubelets, and the work on them. It is a controller's Nodes and Drainer.
type Cluster struct {
	// Instances are those whose kubelets run.
	Instances func() []provider.Instance
	// Version is what the kubelet of an instance reports; nil reports nothing.
	Version func(i provider.Instance) provider.Versions
	// Hook sees every call that changes something.
	Hook Hook

	mu     sync.Mutex
	next   int
	away   bool
	stuck  string
	nodes  map[string]*node          // by token
	stale  map[string][]machine.Node // what Of answers with
	broken []string
	counts map[string]int
}

type node struct {
	machine.Node
	drained bool
}

var (
	_ controller.Nodes   = (*Cluster)(nil)
	_ controller.Drainer = (*Cluster)(nil)
)

const markAnnotation = "controllertest/attempt"

// ErrAway is what calls fail with while the workload API is away.
var ErrAway = errors.New("the workload API is away")

// Away makes the workload API go away, or come back.
func (c *Cluster) Away(away bool) { c.mu.Lock(); c.away = away; c.mu.Unlock() }

// Stick makes drains stay blocked for that reason; empty ends it.
func (c *Cluster) Stick(why string) { c.mu.Lock(); c.stuck = why; c.mu.Unlock() }

// Broken are the rules that were broken: a Node that was removed while its instance ran.
func (c *Cluster) Broken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.broken...)
}

// Writes returns how often each call has changed something.
func (c *Cluster) Writes() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[string]int{}
	for k, v := range c.counts {
		counts[k] = v
	}
	return counts
}

// All returns the Nodes as they are.
func (c *Cluster) All() []machine.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.join()
	var all []machine.Node
	for _, n := range c.nodes {
		all = append(all, n.Node)
	}
	return all
}

// join has the kubelets of running instances register.
func (c *Cluster) join() map[string]provider.Instance {
	running := map[string]provider.Instance{}
	for _, i := range c.Instances() {
		if i.State != provider.Running {
			continue
		}
		running[i.Token] = i
		if c.nodes == nil {
			c.nodes = map[string]*node{}
		}
		if c.nodes[i.Token] == nil {
			c.next++
			n := &node{Node: machine.Node{ProviderID: i.ProviderID, Ready: true, Uninitialized: true}}
			n.Name, n.UID = "node-"+i.Token, fmt.Sprintf("node-uid-%d", c.next)
			c.nodes[i.Token] = n
		}
	}
	for token, n := range c.nodes {
		i, up := running[token]
		n.Ready = up
		if up && c.Version != nil {
			n.Versions = c.Version(i)
		}
	}
	return running
}

// Of returns the Nodes of a token, as from a cache.
func (c *Cluster) Of(_ context.Context, token string) ([]machine.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return nil, ErrAway
	}
	if c.stale != nil {
		return c.stale[token], nil
	}
	return c.ofToken(token), nil
}

// Live returns the Nodes of a token, also those that a cache does not show yet.
func (c *Cluster) Live(_ context.Context, token string) ([]machine.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return nil, ErrAway
	}
	return c.ofToken(token), nil
}

func (c *Cluster) ofToken(token string) []machine.Node {
	c.join()
	if n := c.nodes[token]; n != nil {
		return []machine.Node{n.Node}
	}
	return nil
}

// Freeze makes Of answer with what is there now, until Thaw: a cache that is behind.
func (c *Cluster) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.join()
	c.stale = map[string][]machine.Node{}
	for token := range c.nodes {
		c.stale[token] = c.ofToken(token)
	}
}

// Reregister has the Node of a token go and come again, with another UID, as when somebody deletes it and its kubelet runs.
func (c *Cluster) Reregister(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodes, token)
	c.join()
}

// Thaw ends Freeze.
func (c *Cluster) Thaw() { c.mu.Lock(); c.stale = nil; c.mu.Unlock() }

// change runs a change of the Node of that UID.
func (c *Cluster) change(call, uid string, f func(token string, n *node) error) error {
	if err := c.Hook.before(call); err != nil {
		return err
	}
	if err := c.locked(call, uid, f); err != nil {
		return err
	}
	c.Hook.after(call)
	return nil
}

func (c *Cluster) locked(call, uid string, f func(token string, n *node) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return ErrAway
	}
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[call]++
	for token, n := range c.nodes {
		if n.UID == uid {
			return f(token, n)
		}
	}
	return nil
}

// Start initializes a Node.
func (c *Cluster) Start(_ context.Context, n machine.Node, m machine.Machine) error {
	return c.change("StartNode", n.UID, func(_ string, n *node) error {
		n.Uninitialized = false
		change := n.Change(m)
		n.Labels, n.Annotations, n.Given = merged(n.Labels, change.Labels), merged(n.Annotations, change.Annotations), &change.Given
		is := func(in []provider.Taint, same func(a, b provider.Taint) bool) func(provider.Taint) bool {
			return func(t provider.Taint) bool {
				return slices.ContainsFunc(in, func(o provider.Taint) bool { return same(o, t) })
			}
		}
		taints := slices.DeleteFunc(slices.Clone(n.Taints), is(change.Drop, func(a, b provider.Taint) bool { return a == b }))
		taints = slices.DeleteFunc(taints, is(change.Taints, func(a, b provider.Taint) bool { return a.Key == b.Key && a.Effect == b.Effect }))
		n.Taints = append(taints, change.Taints...)
		return nil
	})
}

func merged(is map[string]string, change map[string]*string) map[string]string {
	next := map[string]string{}
	maps.Copy(next, is)
	for k, v := range change {
		if delete(next, k); v != nil {
			next[k] = *v
		}
	}
	return next
}

// Edit changes a Node as somebody else does.
func (c *Cluster) Edit(token string, change func(n *machine.Node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[token]; n != nil {
		change(&n.Node)
	}
}

// Mark keeps an autoscaler from a Node, or ends that.
func (c *Cluster) Mark(_ context.Context, ref machine.NodeRef, on bool) error {
	return c.change("Mark", ref.UID, func(_ string, n *node) error {
		yes := "true"
		switch _, there := n.Annotations[machine.NoScaleDownAnnotation]; {
		case on && !there:
			n.Annotations, n.Marked = merged(n.Annotations, map[string]*string{machine.NoScaleDownAnnotation: &yes}), true
		case !on && n.Marked:
			n.Annotations, n.Marked = merged(n.Annotations, map[string]*string{machine.NoScaleDownAnnotation: nil}), false
		}
		return nil
	})
}

// Remove removes the Node of that UID. That of an instance that runs is a broken rule.
func (c *Cluster) Remove(_ context.Context, ref machine.NodeRef) error {
	for _, n := range c.All() {
		if n.Name == ref.Name && n.UID != ref.UID {
			return fmt.Errorf("node %q has the UID %q, not %q: %w", n.Name, n.UID, ref.UID, fs.ErrExist)
		}
	}
	return c.change("RemoveNode", ref.UID, func(token string, _ *node) error {
		if _, runs := c.join()[token]; runs {
			c.broken = append(c.broken, fmt.Sprintf("Node %q was removed while its instance runs", ref.Name))
		}
		delete(c.nodes, token)
		return nil
	})
}

// Held reads the mark.
func (c *Cluster) Held(annotations map[string]string) (int64, bool) {
	var attempt int64
	_, err := fmt.Sscanf(annotations[markAnnotation], "%d", &attempt)
	return attempt, err == nil
}

// Cordon marks a Node.
func (c *Cluster) Cordon(_ context.Context, _, uid string, attempt int64, _ bool) (bool, error) {
	err := c.change("Cordon", uid, func(_ string, n *node) error {
		value := fmt.Sprint(attempt)
		n.Annotations = merged(n.Annotations, map[string]*string{markAnnotation: &value})
		return nil
	})
	return err == nil, err
}

// Drain empties a Node that is marked.
func (c *Cluster) Drain(_ context.Context, name, uid string, attempt int64, force bool) (bool, string, time.Duration, error) {
	blocked := ""
	err := c.change("Drain", uid, func(_ string, n *node) error {
		if _, held := c.Held(n.Annotations); !held {
			return fmt.Errorf("drain: Node %q is not cordoned for attempt %d", name, attempt)
		}
		if blocked = c.stuck; force {
			blocked = ""
		}
		n.drained = blocked == ""
		return nil
	})
	return err == nil && blocked == "", blocked, time.Second, err
}

// Release takes the mark off.
func (c *Cluster) Release(_ context.Context, _, uid string, _ int64) (bool, error) {
	err := c.change("Uncordon", uid, func(_ string, n *node) error {
		n.Annotations, n.drained = merged(n.Annotations, map[string]*string{markAnnotation: nil}), false
		return nil
	})
	return err == nil, err
}
