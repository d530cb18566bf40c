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
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/testenv"
)

// A fault is one thing that is done to the fleet while it goes on.
type fault struct {
	name string
	do   func(s *stage)
}

// What kills servers.
const (
	apiServerKilled = "API server killed"
	etcdKilled      = "etcd killed"
)

// The faults of chaos. Each ends before the next one begins, but for what follows from it.
func faults() []fault {
	return []fault{
		{apiServerKilled, func(s *stage) { s.kill(testenv.APIServer) }},
		{etcdKilled, func(s *stage) { s.kill(testenv.Etcd) }},
		{"API server hung", func(s *stage) { s.hang(testenv.APIServer) }},
		{"etcd hung", func(s *stage) { s.hang(testenv.Etcd) }},
		{"leader killed", (*stage).killLeader},
		{"leader frozen", (*stage).freeze},
		{"watches dropped", func(s *stage) { s.proxy.drop() }},
		{"agent restarted", func(s *stage) {
			name := s.all()[s.r.IntN(len(s.all()))].name
			s.start(name, s.end(name).lives)
		}},
		{"node replaced", func(s *stage) {
			s.joined++
			s.churn(func(string) string { return fmt.Sprintf("node-x%04d", s.joined) })
		}},
		{"node made again", func(s *stage) { s.churn(func(name string) string { return name }) }},
	}
}

// kill ends a server, and starts it again on the same data after a time that is drawn.
func (s *stage) kill(name testenv.Component) {
	s.t.Helper()
	server := s.env.Server(name)
	must(s.t, server.Kill())
	s.pause(time.Duration(s.r.Int64N(int64(2 * time.Second))))
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	must(s.t, server.Start(ctx))
	must(s.t, s.env.APIServer().Start(ctx)) // where it has ended because of etcd
}

// hang freezes a server for a time that is drawn: connections to it stay open, and nobody answers.
func (s *stage) hang(name testenv.Component) {
	s.t.Helper()
	server := s.env.Server(name)
	must(s.t, server.Pause())
	s.pause(2*time.Second + time.Duration(s.r.Int64N(int64(4*time.Second))))
	must(s.t, server.Resume())
}

// churn has a node leave for good, with its agent and its disk, and another one join, which may have its name. Canaries stay. It is one that is being updated,
// if there is such a one at that time.
func (s *stage) churn(named func(before string) string) {
	s.t.Helper()
	all := slices.DeleteFunc(s.all()[s.fleet.Canaries:], func(a *agent) bool { return a.swap }) // those on which a config can be fatal stay, too
	a := all[s.r.IntN(len(all))]
	if updated := slices.DeleteFunc(all, func(a *agent) bool { return !s.audit.slotted(a.name) }); len(updated) > 0 {
		a = updated[s.r.IntN(len(updated))]
	}
	s.end(a.name)
	if err := a.wrong(); err != nil {
		s.t.Error(err)
	}
	s.left[a.name] = true
	s.does("a node leaves", func(ctx context.Context) error { return s.fleet.Leave(ctx, a.name) })
	must(s.t, os.RemoveAll(filepath.Join(s.env.Dir(), "nodes", a.name)))
	name := named(a.name)
	s.does("a node joins", func(ctx context.Context) error { return s.fleet.Join(ctx, name, false) })
	s.does("the node is ready", func(ctx context.Context) error { return s.ready(ctx, name) })
	s.start(name, nil)
}

// A plague does faults one after the other, at times that are drawn: each once, in an order that is drawn, and then any until a time is over.
type plague struct {
	s         *stage
	todo      []fault
	end, last time.Time // when it may end, and when it ends whatever is left
	next      time.Time
}

func (s *stage) plague() *plague {
	p := &plague{s: s, todo: faults(), end: time.Now().Add(s.chaos)}
	p.last = p.end.Add(2 * patience)
	s.r.Shuffle(len(p.todo), func(i, j int) { p.todo[i], p.todo[j] = p.todo[j], p.todo[i] })
	return p
}

// over reports whether there is no fault any more.
func (p *plague) over() bool {
	now := time.Now()
	return now.After(p.end) && len(p.todo) == 0 || now.After(p.last)
}

// strike does a fault if it is time.
func (p *plague) strike() {
	if p.over() || time.Now().Before(p.next) {
		return
	}
	var f fault
	if len(p.todo) > 0 {
		f, p.todo = p.todo[0], p.todo[1:]
	} else {
		f = faults()[p.s.r.IntN(len(faults()))]
	}
	began := time.Now()
	f.do(p.s)
	p.s.faults[f.name]++
	p.s.t.Logf("%s, %s", f.name, time.Since(began).Round(100*time.Millisecond))
	p.next = time.Now().Add(time.Second + time.Duration(p.s.r.Int64N(int64(4*time.Second))))
}

// struck is what of the plague has not come to pass; "" for nothing.
func struck(count map[string]int, fatal, handovers int) string {
	for _, f := range faults() {
		if count[f.name] == 0 {
			return f.name
		}
	}
	switch {
	case fatal == 0:
		return "a fatal config that stops by itself"
	case handovers < count["leader killed"]+count["leader frozen"]:
		return "another leader after each that was killed or frozen"
	}
	return ""
}

// noisy is a client of somebody else, who is not let pass before others and does not wait after a 429.
func (s *stage) noisy() kubernetes.Interface {
	config := rest.CopyConfig(s.connect)
	config.Dial = new(net.Dialer).DialContext
	config.UserAgent = "noise"
	return kubernetes.NewForConfigOrDie(config)
}
