// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/internal/scenario"
	"github.com/belayproject/belay/examples/internal/simnodes"
	"github.com/belayproject/belay/internal/rolloutstage"
)

// A life is what an agent has seen of its node's process: that of a crowd.
type life interface {
	Runs(node string) (config string, ok bool)
	Starts(node string) (configs []string)
	Crashed(digest string) (nodes []string)
}

// An agent is that of a node, over a connection of its own.
type agent struct {
	name  string
	swap  bool   // a config that wants no swap is fatal for it
	lives []life // what the agents on this disk have seen of the node's process; the last is the one that runs
	stop  func()
	gone  chan struct{} // closed when it has ended
	err   error         // why, once it has
}

// start starts the agent of a node. Before are the agents that were on its disk.
func (s *stage) start(name string, before []life) {
	s.t.Helper()
	i, known := slices.BinarySearch(s.fleet.Nodes, name)
	a := &agent{name: name, swap: known && hasSwap(i, s.fleet.Canaries, len(s.fleet.Nodes)), gone: make(chan struct{})}
	config := rest.CopyConfig(s.connect)
	config.Dial = new(net.Dialer).DialContext // connections are shared by those who have the same
	transport, err := rest.TransportFor(config)
	must(s.t, err)
	config = &rest.Config{Host: config.Host, Transport: s.calls.over(transport), QPS: -1, UserAgent: rolloutstage.CrewAgent}
	states := filepath.Join(s.env.Dir(), "nodes")
	must(s.t, os.MkdirAll(states, 0o700))
	c, err := simnodes.New(simnodes.Options{
		Config: config, Dir: states, Init: scenario.Init,
		Breaks: func(_ string, c *kubelet.Config) string { return scenario.Breaks(a.swap, c) },
	}, []string{name})
	must(s.t, err)
	a.lives = append(slices.Clone(before), c)
	ctx, cancel := context.WithCancel(s.t.Context())
	a.stop = cancel
	go func() {
		defer close(a.gone)
		a.err = c.Run(ctx)
		utilnet.CloseIdleConnectionsFor(transport)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents[name] = a
}

// hasSwap reports whether a node has swap: every third one, but most of a small fleet, which has to have more of them
// than a fatal config may break. Canaries have none, and some others have none, which can leave for good.
func hasSwap(i, canaries, nodes int) bool {
	const small = 30
	if nodes < small {
		return i >= canaries && i%4 != 3
	}
	return i >= canaries && i%3 == 0
}

// stopWithin is how long an agent may take to stop.
const stopWithin = 5 * time.Second

// end stops the agent of a node: E30, in 5 s.
func (s *stage) end(name string) *agent {
	s.t.Helper()
	s.mu.Lock()
	a := s.agents[name]
	delete(s.agents, name)
	s.mu.Unlock()
	select {
	case <-a.gone:
		s.t.Errorf("the agent of %s has ended by itself: %v", name, a.err)
		return a
	default:
	}
	began := time.Now()
	a.stop()
	<-a.gone
	s.slowest = max(s.slowest, time.Since(began))
	if took := time.Since(began); took > stopWithin {
		s.t.Errorf("E30: the agent of %s has taken %s to stop, want %s at most", name, took, stopWithin)
	}
	if a.err != nil {
		s.t.Errorf("the agent of %s has ended with %v", name, a.err)
	}
	return a
}

// alive is an error if the agent has ended by itself.
func (a *agent) alive() error {
	select {
	case <-a.gone:
		return fmt.Errorf("the agent of %s has ended by itself: %w", a.name, errors.Join(errEnded, a.err))
	default:
		return nil
	}
}

var errEnded = errors.New("nobody has stopped it")

// crowd is the agent that runs.
func (a *agent) crowd() life { return a.lives[len(a.lives)-1] }

// starts are the configs with which the process of a node was started, in order, by each of the agents on its disk.
func (a *agent) starts() [][]string {
	all := make([][]string, len(a.lives))
	for i, c := range a.lives {
		all[i] = c.Starts(a.name)
	}
	return all
}

// crashed reports whether a config has ever ended the node's process, by its digest.
func (a *agent) crashed(digest string) bool {
	return slices.ContainsFunc(a.lives, func(c life) bool { return len(c.Crashed(digest)) > 0 })
}

// runs is how many nodes run a config.
func (s *stage) runs(config string) (n int) {
	for _, a := range s.all() {
		if now, ok := a.crowd().Runs(a.name); ok && now == config {
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
		n[a.name] = len(slices.Concat(a.starts()...))
	}
	return n
}
