// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/examples/agent/kubeletpayload"
	"github.com/belayproject/belay/examples/demo/acts"
	"github.com/belayproject/belay/examples/demo/crowd"
	"github.com/belayproject/belay/internal/rolloutstage"
)

// An agent is that of a node, over a connection of its own.
type agent struct {
	name   string
	swap   bool     // a config that wants no swap is fatal for it
	before []string // with what the agents before it have started the node's process
	crowd  *crowd.Crowd
	stop   func() error
}

// start starts the agent of a node. Before is what was on its disk.
func (s *stage) start(name string, before []string) {
	s.t.Helper()
	i, known := slices.BinarySearch(s.fleet.Nodes, name)
	a := &agent{name: name, swap: known && i >= s.fleet.Canaries && i%3 == 0, before: before}
	config := rest.CopyConfig(s.connect)
	config.Dial = new(net.Dialer).DialContext // connections are shared by those who have the same
	transport, err := rest.TransportFor(config)
	must(s.t, err)
	config = &rest.Config{Host: config.Host, Transport: s.calls.over(transport), QPS: -1, UserAgent: rolloutstage.CrewAgent}
	states := filepath.Join(s.env.Dir(), "nodes")
	must(s.t, os.MkdirAll(states, 0o700))
	a.crowd, err = crowd.New(crowd.Options{
		Config: config, Dir: states, Init: acts.Init,
		Breaks: func(_ string, c *kubeletpayload.Config) string { return acts.Breaks(a.swap, c) },
	}, []string{name})
	must(s.t, err)
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- a.crowd.Run(ctx) }()
	a.stop = func() error {
		cancel()
		err := <-done
		utilnet.CloseIdleConnectionsFor(transport)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents[name] = a
}

// end stops the agent of a node.
func (s *stage) end(name string) *agent {
	s.t.Helper()
	s.mu.Lock()
	a := s.agents[name]
	delete(s.agents, name)
	s.mu.Unlock()
	if err := a.stop(); err != nil {
		s.t.Errorf("the agent of %s has ended with %v", name, err)
	}
	return a
}

// starts are the configs with which the process of a node was started, in order.
func (a *agent) starts() []string { return slices.Concat(a.before, a.crowd.Starts(a.name)) }

// runs is how many nodes run a config.
func (s *stage) runs(config string) (n int) {
	for _, a := range s.all() {
		if now, ok := a.crowd.Runs(a.name); ok && now == config {
			n++
		}
	}
	return n
}

// all are the agents by name.
func (s *stage) all() []*agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*agent, 0, len(s.agents))
	for _, a := range s.agents {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *agent) int { return strings.Compare(a.name, b.name) })
	return all
}

// count is how often each node's process was started.
func (s *stage) count() map[string]int {
	n := map[string]int{}
	for _, a := range s.all() {
		n[a.name] = len(a.starts())
	}
	return n
}

// wrong is what a node's process was started with and must not have been: E15, a node that has a config never falls back to the one that it came with.
func (a *agent) wrong() error {
	starts := a.starts()
	if i := slices.IndexFunc(starts, func(c string) bool { return c != "" }); i >= 0 && slices.Contains(starts[i:], "") {
		return fmt.Errorf("E15: node %s falls back to the config that it came with: %q", a.name, starts)
	}
	return nil
}
