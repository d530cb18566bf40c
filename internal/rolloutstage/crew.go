// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// verifyLimit is for how long beyond the least time an agent gives a revision that does not verify.
const verifyLimit = time.Second

// A Crew are the agents of all nodes. Each looks when its shadow has changed, and when it has asked to. One watch of all shadows stands for the
// watch of each.
type Crew struct {
	// Shadows are those of the nodes.
	Shadows kube.Cache[v1alpha1.NodeShadow]

	shadows *kube.Shadows
	o       Options

	mu       sync.Mutex
	machines map[string]*Machine
	residing sync.WaitGroup
}

// A Machine is a node that does what its agent says. A revision whose name begins with "fatal" breaks it, and there is no way back from that.
type Machine struct {
	node   string
	agent  *nodeagent.Agent
	shadow kube.AgentShadow
	seen   string // the version of the shadow
	due    time.Time
	disk   []byte

	changed chan struct{}      // wakes one that runs by itself
	end     context.CancelFunc // of one that does; nil before it has begun

	mu                sync.Mutex
	current, previous protocol.Revision
	applied           []string
}

func newCrew(client dynamic.Interface, o Options) (*Crew, error) {
	seen, err1 := kube.NewShadowCache(client)
	shadows, err2 := kube.NewShadows(client)
	return &Crew{Shadows: seen, shadows: shadows, o: o, machines: map[string]*Machine{}}, errors.Join(err1, err2)
}

// add gives a node an agent. Its node runs v1.
func (c *Crew) add(name, uid string) error {
	current := protocol.Revision{Name: "v1", Digest: v1alpha1.OpaqueDigest("v1")}
	m := &Machine{node: name, current: current, changed: make(chan struct{}, 1)}
	verify := c.o.Verify
	if c.o.Spread > 0 {
		verify += rand.N(c.o.Spread)
	}
	var err error
	if m.shadow, err = kube.NewAgentShadow(c.shadows, name, nil); err != nil {
		return err
	}
	a, err := nodeagent.New(nodeagent.Options{
		Shadows: m.shadow, Disk: m, Updater: m,
		NodeUID:   func(context.Context) (string, error) { return uid, nil },
		VerifyFor: verify, VerifyEvery: max(time.Millisecond, verify/6), VerifyWithin: verify + verifyLimit, Changed: m.changed,
	})
	if err != nil {
		return err
	}
	m.agent = a
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machines[name] = m
	return nil
}

// remove takes the agent of a node away, as the machine is gone.
func (c *Crew) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.machines[name]; m != nil && m.end != nil {
		m.end()
	}
	delete(c.machines, name)
}

// Machines are all machines by name.
func (c *Crew) Machines() map[string]*Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.machines)
}

// run lets the agents work until ctx ends.
func (c *Crew) run(ctx context.Context) {
	changed := make(chan struct{}, 1)
	go func() {
		_ = c.Shadows.Run(ctx, func() { poke(changed) })
	}()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	defer c.residing.Wait()
	quiet := klog.NewContext(ctx, klog.Logger{})
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-ticker.C:
		}
		if c.o.Resident {
			c.wake(quiet)
		} else {
			c.turn(quiet)
		}
	}
}

// turn has every agent take a step that has something to look at.
func (c *Crew) turn(ctx context.Context) {
	machines := c.Machines()
	for _, sh := range c.Shadows.List() {
		if m := machines[sh.Name]; m != nil && (m.seen != sh.ResourceVersion || !m.due.IsZero() && time.Now().After(m.due)) {
			m.shadow.See(sh)
			m.look(ctx, sh.ResourceVersion)
		}
	}
}

// wake tells agents that run by themselves of shadows that have changed. Those that do not run yet begin.
func (c *Crew) wake(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.machines {
		if m.end == nil {
			own, end := context.WithCancel(ctx)
			m.end = end
			c.residing.Go(func() { _ = m.agent.Run(own) }) // it returns nil
		}
	}
	for _, sh := range c.Shadows.List() {
		if m := c.machines[sh.Name]; m != nil && m.seen != sh.ResourceVersion {
			m.seen = sh.ResourceVersion
			m.shadow.See(sh)
			poke(m.changed)
		}
	}
}

// poke wakes whoever waits for the channel, which has a place for one.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// look is one step of the agent. After an error it is tried again.
func (m *Machine) look(ctx context.Context, version string) {
	after, err := m.agent.Reconcile(ctx, m.node)
	m.seen, m.due = version, time.Time{}
	if err != nil {
		after = 100 * time.Millisecond
	}
	if after > 0 {
		m.due = time.Now().Add(after)
	}
}

// History returns what the node runs, and what it has applied, in order.
func (m *Machine) History() (current string, applied []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current.Name, append([]string{}, m.applied...)
}

// Get implements [nodeagent.Disk].
func (m *Machine) Get(context.Context, string) ([]byte, error) {
	if m.disk == nil {
		return nil, fs.ErrNotExist
	}
	return m.disk, nil
}

// Put implements [nodeagent.Disk].
func (m *Machine) Put(_ context.Context, _ string, payload []byte) error {
	m.disk = payload
	return nil
}

// Observe implements [nodeagent.Updater].
func (m *Machine) Observe(context.Context) (nodeagent.Observation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return nodeagent.Observation{Current: m.current, Previous: m.previous, BootID: "boot"}, nil
}

// Prepare implements [nodeagent.Updater].
func (m *Machine) Prepare(context.Context, protocol.Revision) error { return nil }

// Disruption implements [nodeagent.Disrupter]: its pods have to go, and it does not boot.
func (m *Machine) Disruption(context.Context, protocol.Revision, protocol.Revision) (nodeagent.Disruption, error) {
	return nodeagent.DisruptionDrain, nil
}

// Apply implements [nodeagent.Updater].
func (m *Machine) Apply(_ context.Context, a nodeagent.Attempt) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied = append(m.applied, a.Revision.Name)
	m.previous, m.current = m.current, a.Revision
	return nil
}

// Verify implements [nodeagent.Updater].
func (m *Machine) Verify(_ context.Context, a nodeagent.Attempt) (nodeagent.Health, error) {
	if strings.HasPrefix(a.Revision.Name, "fatal") {
		return nodeagent.Health{Verdict: nodeagent.Fail, Message: "nothing runs any more"}, nil
	}
	return nodeagent.Health{Verdict: nodeagent.Pass}, nil
}

// Revert implements [nodeagent.Updater].
func (m *Machine) Revert(context.Context, nodeagent.Attempt) error { return nodeagent.ErrIrreversible }
