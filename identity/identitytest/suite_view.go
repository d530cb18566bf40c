// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/identity"
)

// An observer is a process with a view.
type observer struct {
	view *identity.View

	mu     sync.Mutex
	events []string // as "Left a Quiet"
}

// observe starts a member of the name with a view, and waits until it is up to date.
func (s *suite) observe(name string) *observer {
	s.Helper()
	p := s.start(name, "observer")
	p.begins()
	informer, err := identity.NewInformer(p.wire, component)
	if err != nil {
		s.Fatal(err)
	}
	o := &observer{}
	o.view, err = identity.NewView(identity.ViewConfig{
		Source: informer, Canary: p.member, Liveness: suiteLiveness, MassLoss: 1, Clock: s.clock,
	})
	if err != nil {
		s.Fatal(err)
	}
	o.view.Subscribe(func(e identity.Event) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.events = append(o.events, strings.TrimSpace(fmt.Sprint(e.Type, " ", e.Peer.Key.Name, " ", e.Reason)))
	})
	ctx, cancel := context.WithCancel(s.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	running.Go(func() {
		if err := o.view.Run(ctx); err != nil {
			s.Errorf("the view ended with %v, want nil", err)
		}
	})
	s.Cleanup(func() {
		cancel()
		running.Wait()
	})
	s.eventually(func() string {
		if err := o.view.Healthy(); err != nil {
			return err.Error()
		}
		return ""
	})
	return o
}

// of returns what was told of a peer.
func (o *observer) of(name string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var told []string
	for _, e := range o.events {
		if strings.Contains(e+" ", " "+name+" ") {
			told = append(told, strings.Replace(e, " "+name, "", 1))
		}
	}
	return strings.Join(told, ", ")
}

// alive returns the names of those who are alive.
func (o *observer) alive() string {
	var found []string
	for _, p := range o.view.Peers(identity.Alive) {
		found = append(found, p.Key.Name)
	}
	return strings.Join(found, " ")
}

// comings: who begins, ends, dies or is replaced is told, once each; and who is dead is not alive, though its Lease is there: R-ID-13.
func (s *suite) comings() {
	o := s.observe("me")
	lock := filepath.Join(s.TempDir(), "lock")
	locked := func(spec *identity.Spec) { quick(spec); spec.LockFile = lock }
	dies, stops, restarts := s.start("dies", "one", quick), s.start("stops", "two"), s.start("restarts", "three", locked)
	dies.begins()
	stops.begins()
	restarts.begins()
	s.eventually(func() string { return differ(o.alive(), "dies me restarts stops") })
	dies.kill()
	stops.stop()
	restarts.kill()
	s.start("restarts", "three", locked).begins()
	for name, want := range map[string]string{
		"dies": "Joined, Suspected, Left Quiet", "stops": "Joined, Left Released", "restarts": "Joined, Left Replaced, Joined", "me": "Joined",
	} {
		s.eventually(func() string { return differ(o.of(name), want) })
	}
	s.eventually(func() string { return differ(o.alive(), "me restarts") })
	s.wantThere(s.admin, "dies", true)
}

func differ(got, want string) string {
	if got == want {
		return ""
	}
	return fmt.Sprintf("got %q, want %q", got, want)
}

// racing renews a Lease just before it is deleted.
type racing struct {
	Leases
	s    *suite
	name string
}

func (r racing) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if name == r.name {
		r.s.renew(r.Leases, name)
	}
	return r.Leases.Delete(ctx, name, o)
}

func (s *suite) renew(leases identity.LeaseClient, name string) {
	s.Helper()
	s.change(leases, name, func(l *coordinationv1.Lease) { l.Spec.RenewTime = ptr.To(metav1.NowMicro()) })
}

// collection has Leases that are expired, fresh, expired without the label, and expired in another namespace; and one that is renewed after the
// collector has decided to delete it. R-ID-09, R-ID-10, R-ID-11, R-ID-14.
func (s *suite) collection() {
	abroad := s.Client(s.Abroad)
	put := func(leases identity.LeaseClient, name string, labels map[string]string) {
		// As another version of the package might have left it: without most fields.
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		l.Spec.HolderIdentity = ptr.To(name + "_1")
		if _, err := leases.Create(s.Context(), l, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
	ours := map[string]string{identity.ComponentLabel: component}
	put(s.admin, "expired", ours)
	put(s.admin, "racer", ours)
	put(s.admin, "bare", nil)
	put(abroad, "expired", ours)
	began := time.Now()
	s.start("fresh", "one").begins()
	o := s.observe("me")
	s.collect(o, abroad, map[string]identity.CollectOutcome{"expired": identity.Renewed, "racer": identity.Gone})
	if after := time.Since(began); after < suiteGCAfter {
		s.Errorf("the first deletion was tried after %v, want %v or more", after, suiteGCAfter)
	}
	s.collect(o, racing{s.admin, s, "racer"}, map[string]identity.CollectOutcome{"expired": identity.Collected, "racer": identity.Renewed})
	s.wantThere(s.admin, "expired", false)
	for _, name := range []string{"racer", "bare", "fresh", "me"} {
		s.wantThere(s.admin, name, true)
	}
	s.wantThere(abroad, "expired", true)
	s.eventually(func() string { return differ(o.of("racer"), "Joined") })
}

// collect makes passes until there are as many outcomes as are wanted. A client of another namespace finds another object under the name.
func (s *suite) collect(o *observer, leases identity.LeaseClient, want map[string]identity.CollectOutcome) {
	s.Helper()
	collector, err := identity.NewCollector(leases, o.view, identity.CollectorConfig{GCAfter: suiteGCAfter})
	if err != nil {
		s.Fatal(err)
	}
	got := map[string]identity.CollectOutcome{}
	s.eventually(func() string {
		report, err := collector.Collect(s.Context())
		if err != nil {
			return err.Error()
		}
		for _, l := range report.Leases {
			got[l.Key.Name] = l.Outcome
		}
		if len(got) < len(want) {
			return fmt.Sprintf("outcomes are %v, want %v", got, want)
		}
		return ""
	})
	if !maps.Equal(got, want) {
		s.Errorf("outcomes are %v, want %v", got, want)
	}
}
