// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutproof_test

import (
	"context"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A crew are the agents of all nodes, in this process. Each looks when its shadow has changed, and when it has asked to.
type crew struct {
	mu     sync.Mutex
	agents map[string]*machine
	cache  *kube.Cache[v1alpha1.NodeShadow]
	// takes is how long an agent verifies.
	takes time.Duration
}

// A machine is a node that does what its agent says.
type machine struct {
	agent *nodeagent.Agent
	seen  string // the version of the shadow
	due   time.Time

	mu                sync.Mutex
	current, previous protocol.Revision
	applied           []string // revisions, in order
	disk              []byte
}

// add gives a node an agent. Its node runs v1.
func (c *crew) add(t *testing.T, client dynamic.Interface, name, uid string) {
	t.Helper()
	m := &machine{current: protocol.Revision{Name: "v1", Digest: v1alpha1.OpaqueDigest("v1")}}
	a, err := nodeagent.New(nodeagent.Options{
		Shadows: kube.NewAgentShadow(kube.NewShadows(client), name, nil), Disk: m, Updater: m,
		NodeUID: func(context.Context) (string, error) { return uid, nil }, VerifyFor: c.takes, VerifyEvery: max(time.Millisecond, c.takes/4),
	})
	must(t, err)
	m.agent = a
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agents[name] = m
}

// remove takes the agent of a node away, as the machine is gone.
func (c *crew) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.agents, name)
}

// of returns the machine of a node, or one that runs nothing.
func (c *crew) of(name string) *machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.agents[name]; m != nil {
		return m
	}
	return &machine{}
}

// all returns all machines by name.
func (c *crew) all() map[string]*machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.agents)
}

// run lets the agents work until ctx ends.
func (c *crew) run(ctx context.Context, client dynamic.Interface) {
	c.cache = kube.NewShadowCache(client)
	changed := make(chan struct{}, 1)
	go func() {
		_ = c.cache.Run(ctx, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	ctx = klog.NewContext(ctx, klog.Logger{})
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-ticker.C:
		}
		for _, sh := range c.cache.List() {
			if m := c.of(sh.Name); m.agent != nil && (m.seen != sh.ResourceVersion || !m.due.IsZero() && time.Now().After(m.due)) {
				m.look(ctx, sh.ResourceVersion)
			}
		}
	}
}

// look is one step of the agent. An error is tried again.
func (m *machine) look(ctx context.Context, version string) {
	after, err := m.agent.Reconcile(ctx)
	m.seen, m.due = version, time.Time{}
	if err != nil {
		after = 100 * time.Millisecond
	}
	if after > 0 {
		m.due = time.Now().Add(after)
	}
}

// history returns what the node runs, and what it has applied.
func (m *machine) history() (current string, applied []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current.Name, append([]string{}, m.applied...)
}

// Get and Put implement nodeagent.Disk.
func (m *machine) Get(context.Context, string) ([]byte, error) {
	if m.disk == nil {
		return nil, fs.ErrNotExist
	}
	return m.disk, nil
}

func (m *machine) Put(_ context.Context, _ string, payload []byte) error {
	m.disk = payload
	return nil
}

// The rest implements nodeagent.Updater. A revision whose name begins with "fatal" breaks the node, and there is no way back from it.

func (m *machine) Observe(context.Context) (nodeagent.Observation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return nodeagent.Observation{Current: m.current, Previous: m.previous, BootID: "boot"}, nil
}

func (m *machine) Prepare(context.Context, protocol.Revision) error { return nil }

func (m *machine) Apply(_ context.Context, a nodeagent.Attempt) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied = append(m.applied, a.Revision.Name)
	m.previous, m.current = m.current, a.Revision
	return nil
}

func (m *machine) Verify(_ context.Context, a nodeagent.Attempt) (nodeagent.Health, error) {
	if strings.HasPrefix(a.Revision.Name, "fatal") {
		return nodeagent.Health{Verdict: nodeagent.Fail, Message: "nothing runs any more"}, nil
	}
	return nodeagent.Health{Verdict: nodeagent.Pass}, nil
}

func (m *machine) Revert(context.Context, nodeagent.Attempt) error { return nodeagent.ErrIrreversible }
