// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
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

// The faults of chaos. Each ends before the next one begins, but for what follows from it.
func faults() []fault {
	return []fault{
		{"API server killed", func(s *stage) { s.kill(testenv.APIServer) }},
		{"etcd killed", func(s *stage) { s.kill(testenv.Etcd) }},
		{"leader killed", func(s *stage) { s.replace(s.leading()) }},
		{"leader frozen", (*stage).freeze},
		{"watches dropped", func(s *stage) { s.proxy.drop() }},
		{"agent restarted", func(s *stage) {
			name := s.all()[s.r.IntN(len(s.all()))].name
			s.start(name, s.end(name).starts())
		}},
		{"node replaced", (*stage).churn},
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

// freeze stops the leader for longer than its Lease lasts, and thaws it when another one leads.
func (s *stage) freeze() {
	s.t.Helper()
	l := s.controllers[s.leading()]
	if err := syscall.Kill(l.process.PID(), syscall.SIGSTOP); err != nil {
		return // it has ended, and is replaced
	}
	s.pause(leaseFor + 2*time.Second)
	_ = l.process.Thaw()
	l.mu.Lock()
	l.leads = false
	l.mu.Unlock()
}

// churn has a node leave for good, with its agent and its disk, and another one join. Canaries stay.
func (s *stage) churn() {
	s.t.Helper()
	all := s.all()
	a := all[s.fleet.Canaries+s.r.IntN(len(all)-s.fleet.Canaries)]
	for a.swap { // those on which a config can be fatal stay, too
		a = all[s.fleet.Canaries+s.r.IntN(len(all)-s.fleet.Canaries)]
	}
	s.end(a.name)
	if err := a.wrong(); err != nil {
		s.t.Error(err)
	}
	s.does("a node leaves", func(ctx context.Context) error { return s.fleet.Leave(ctx, a.name) })
	must(s.t, os.RemoveAll(filepath.Join(s.env.Dir(), "nodes", a.name)))
	s.joined++
	name := fmt.Sprintf("node-x%04d", s.joined)
	s.does("a node joins", func(ctx context.Context) error { return s.fleet.Join(ctx, name, false) })
	s.does("the node is ready", func(ctx context.Context) error { return s.ready(ctx, name) })
	s.start(name, nil)
}

// A plague does faults one after the other, at times that are drawn: each once, in an order that is drawn, or any until a time is over.
type plague struct {
	s    *stage
	todo []fault
	end  time.Time // zero: until todo is empty
	next time.Time
}

func (s *stage) plague() *plague {
	p := &plague{s: s, todo: faults()}
	s.r.Shuffle(len(p.todo), func(i, j int) { p.todo[i], p.todo[j] = p.todo[j], p.todo[i] })
	if s.chaos > 0 {
		p.end = time.Now().Add(s.chaos)
	}
	return p
}

// over reports whether there is no fault any more.
func (p *plague) over() bool {
	if p.end.IsZero() {
		return len(p.todo) == 0
	}
	return time.Now().After(p.end)
}

// strike does a fault if it is time.
func (p *plague) strike() {
	if p.over() || time.Now().Before(p.next) {
		return
	}
	var f fault
	if f = p.todo[0]; p.end.IsZero() {
		p.todo = p.todo[1:]
	} else {
		f = p.todo[p.s.r.IntN(len(p.todo))]
	}
	began := time.Now()
	f.do(p.s)
	p.s.faults[f.name]++
	p.s.t.Logf("%s, %s", f.name, time.Since(began).Round(100*time.Millisecond))
	p.next = time.Now().Add(time.Second + time.Duration(p.s.r.Int64N(int64(4*time.Second))))
}

// noisy is a client of somebody else, who is not let pass before others and does not wait after a 429.
func (s *stage) noisy() kubernetes.Interface {
	config := rest.CopyConfig(s.connect)
	config.Dial = new(net.Dialer).DialContext
	config.UserAgent = "noise"
	return kubernetes.NewForConfigOrDie(config)
}
