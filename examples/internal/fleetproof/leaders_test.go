// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/internal/rolloutstage"
)

const (
	leaseName = "fleetproof"
	// leaseFor is how long a leader that is silent is waited for.
	leaseFor = 5 * time.Second
	// lifetime of a controller is longer than any soak: none ends because its time is over.
	lifetime = 12 * time.Hour
)

// A leader is a controller's process, and what it tells.
type leader struct {
	holder  string
	process *rolloutstage.Process
	gone    chan struct{} // closed when it has ended

	mu     sync.Mutex
	failed []string
}

// lead starts one of the controllers.
func (s *stage) lead(i int) *leader {
	s.t.Helper()
	holder := fmt.Sprintf("controller-%d-%d", i, s.r.Uint32())
	p, err := (&rolloutstage.Fleet{Env: s.env}).Spawn(rolloutstage.Task{
		Lease: leaseName, Holder: holder, LeaseFor: leaseFor, Member: true, Health: true, Kubeconfig: s.kubeconfig(), Life: lifetime,
	})
	must(s.t, err)
	s.t.Cleanup(p.Kill)
	l := &leader{holder: holder, process: p, gone: make(chan struct{})}
	go l.listen()
	return l
}

func (l *leader) listen() {
	defer close(l.gone)
	for e := range l.process.Events {
		if e.Kind == rolloutstage.Failed {
			l.mu.Lock()
			l.failed = append(l.failed, e.What)
			l.mu.Unlock()
		}
	}
}

// holder is which controller has the Lease, as the Lease says.
func (s *stage) holder(ctx context.Context) (string, error) {
	l, err := s.core.CoordinationV1().Leases(metav1.NamespaceDefault).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return rolloutstage.LeaderOf(l), nil
}

// leading waits until one of the controllers that live has the Lease, and not the one of that name, and returns its number.
func (s *stage) leading(but string) (i int) {
	s.t.Helper()
	s.does("a controller leads", func(ctx context.Context) error {
		holder, err := s.holder(ctx)
		if err != nil {
			return err
		}
		if i = slices.IndexFunc(s.controllers[:], func(l *leader) bool { return l.holder == holder }); i < 0 || holder == but {
			return fmt.Errorf("%q has the Lease", holder)
		}
		return nil
	})
	return i
}

// killLeader kills the controller that leads, and waits until another one does.
func (s *stage) killLeader() {
	s.t.Helper()
	i := s.leading("")
	was := s.controllers[i].holder
	s.replace(i)
	s.leading(was)
	s.handovers++
}

// freeze stops the leader until another one leads, and for longer than its Lease lasts, and thaws it.
func (s *stage) freeze() {
	s.t.Helper()
	s.staff()
	l := s.controllers[s.leading("")]
	if err := syscall.Kill(l.process.PID(), syscall.SIGSTOP); err != nil {
		return // it has ended, which is told
	}
	s.pause(leaseFor + 2*time.Second)
	s.leading(l.holder)
	s.handovers++
	_ = l.process.Thaw()
}

// replace kills a controller, which may have ended already, and starts another one.
func (s *stage) replace(i int) {
	s.t.Helper()
	s.controllers[i].ends(s)
	s.controllers[i] = s.lead(i)
}

// ends kills a controller, and tells what is wrong with how it was until then.
func (l *leader) ends(s *stage) {
	s.t.Helper()
	l.process.Kill()
	<-l.gone
	l.mu.Lock()
	defer l.mu.Unlock()
	if why := unfit(l.process.End(), l.failed); why != "" {
		s.t.Errorf("%s: %s", l.holder, why)
	}
}

// broken are what the Go runtime, apimachinery and the race detector print of a program that is broken.
var broken = []string{"panic:", "Observed a panic", "fatal error:", "DATA RACE"}

// unfit is what is wrong with how a controller has ended; "" where nothing is. None may end by itself: it waits for a server that is away, and one that has
// lost its Lease asks for it again.
func unfit(is rolloutstage.End, failed []string) string {
	switch bad := slices.ContainsFunc(broken, func(word string) bool { return strings.Contains(is.Output, word) }); {
	case bad:
		return fmt.Sprintf("it has printed what no program should: %s", is.Output)
	case is.Itself:
		return fmt.Sprintf("it has ended by itself, exit code %d, failures %q; it printed %q", is.Code, failed, is.Output)
	case len(failed) > 0:
		return fmt.Sprintf("it has failed: %q", failed)
	}
	return ""
}

// staff starts another controller for each that has ended.
func (s *stage) staff() {
	s.t.Helper()
	for i, l := range s.controllers {
		select {
		case <-l.gone:
			s.replace(i)
		default:
		}
	}
}
