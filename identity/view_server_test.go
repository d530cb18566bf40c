// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/belayproject/belay/identity"
	"github.com/belayproject/belay/internal/testproc"
)

// The times of the tests with a real server.
const (
	realLiveness = 8 * time.Second
	realPatience = time.Minute
)

// onServer is a namespace of a real API server, with a member and what watches it.
type onServer struct {
	t         *testing.T
	ctx       context.Context
	cancel    context.CancelFunc
	admin     kubernetes.Interface
	namespace string
	leases    typedcoordinationv1.LeaseInterface
	view      *identity.View

	mu     sync.Mutex
	events []string
}

func onAServer(t *testing.T) *onServer {
	t.Helper()
	env := shared.Env(t)
	admin, err := kubernetes.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	s := &onServer{t: t, admin: admin, namespace: env.Namespace(t)}
	s.leases = admin.CoordinationV1().Leases(s.namespace)
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx, s.cancel = ctx, cancel
	t.Cleanup(cancel)
	return s
}

// run runs something until the test ends, and waits for it.
func (s *onServer) run(what string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("%s ended with %v, want nil", what, err)
		}
	})
}

func (s *onServer) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// eventually waits until done returns the empty string, which otherwise says what is missing.
func (s *onServer) eventually(done func() string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, realPatience)
	defer cancel()
	pace := testproc.NewPace()
	for {
		missing := done()
		if missing == "" {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("after %v: %s", realPatience, missing)
		case <-pace.Next():
		}
	}
}

// passes lets real time go by.
func (s *onServer) passes(d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(d):
	}
}

// member runs a Member of a component.
func (s *onServer) member(name, component string) *identity.Member {
	s.t.Helper()
	member, err := identity.New(s.leases, identity.Spec{
		Namespace: s.namespace, Name: name, Component: component, Host: "one-host",
		Fingerprint: identity.Fingerprint{BootID: "boot-of-" + name},
		Timing: identity.Timing{
			Renew: time.Second, Jitter: 0.04, Hold: realLiveness * 8 / 10, Liveness: realLiveness, Duration: time.Hour, Stop: 5 * time.Second,
		},
	}, identity.Options{})
	s.must(err)
	s.run("member "+name, func(ctx context.Context) error { return member.Run(ctx, nil) })
	return member
}

// watch runs an informer and the view of it.
func (s *onServer) watch(leases identity.LeaseWatcher, canary identity.Canary, components ...string) cache.SharedIndexInformer {
	s.t.Helper()
	informer, err := identity.NewInformer(leases, components...)
	s.must(err)
	s.view, err = identity.NewView(identity.ViewConfig{Source: informer, Canary: canary, Liveness: realLiveness, MassLoss: 1})
	s.must(err)
	s.view.Subscribe(func(e identity.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, strings.TrimSpace(fmt.Sprint(e.Type, " ", e.Peer.Key.Name, " ", e.Reason)))
	})
	s.run("view", s.view.Run)
	s.run("informer", func(ctx context.Context) error { informer.RunWithContext(ctx); return nil })
	s.eventually(func() string { return errorText(s.view.Healthy()) })
	return informer
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// told says how often an event was told.
func (s *onServer) told(event string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.events {
		if e == event {
			n++
		}
	}
	return n
}

// put makes a Lease of a component, of none if it is empty.
func (s *onServer) put(namespace, name, component string) *coordinationv1.Lease {
	s.t.Helper()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(name + "_1")},
	}
	if component != "" {
		lease.Labels = map[string]string{identity.ComponentLabel: component}
	}
	lease, err := s.admin.CoordinationV1().Leases(namespace).Create(s.ctx, lease, metav1.CreateOptions{})
	s.must(err)
	return lease
}

// renew writes the next version of a Lease.
func (s *onServer) renew(ctx context.Context, name string) error {
	lease, err := s.leases.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.NowMicro()
	lease.Spec.RenewTime = &now
	_, err = s.leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// live renews a Lease each second.
func (s *onServer) live(name string) {
	s.run("renewing "+name, func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Second):
			}
			if err := s.renew(ctx, name); err != nil && ctx.Err() == nil {
				return err
			}
		}
	})
}

// TestSelectorFindsMembersAlone has three members of one host, one of another component, and a real leader election in the same namespace.
// R-ID-01, R-ID-05.
func TestSelectorFindsMembersAlone(t *testing.T) {
	t.Parallel()
	s := onAServer(t)
	canary := s.member("a-1", "agent")
	s.member("a-2", "agent")
	s.member("a-3", "agent")
	s.member("c-1", "controller")
	s.put(s.namespace, "bare", "")
	s.elect("leader")
	informer := s.watch(s.leases, canary, "agent")
	s.eventually(func() string {
		if got := names(s.view.Peers(identity.Alive)); got != "a-1 a-2 a-3" {
			return fmt.Sprintf("alive are %q, want the agents", got)
		}
		return ""
	})
	holders := map[string]bool{}
	for _, p := range s.view.Peers() {
		holders[p.Holder] = true
		if p.Host != "one-host" || p.Fingerprint.BootID != "boot-of-"+p.Key.Name || len(p.Lease.ManagedFields) != 0 {
			t.Errorf("got %+v, want what the member wrote, without managed fields", p)
		}
	}
	if len(holders) != 3 {
		t.Errorf("3 members have the holders %v, want one each", holders)
	}
	if got := informer.GetStore().ListKeys(); len(got) != 3 {
		t.Errorf("the informer holds %q, want the agents alone", got)
	}
	everyone := s.watch(s.leases, canary)
	keys := everyone.GetStore().ListKeys()
	slices.Sort(keys)
	if want := fmt.Sprintf("[%[1]s/a-1 %[1]s/a-2 %[1]s/a-3 %[1]s/c-1]", s.namespace); fmt.Sprint(keys) != want {
		t.Errorf("without a component: got %q, want %q", keys, want)
	}
	two := s.watch(s.leases, canary, "controller", "agent")
	if got := two.GetStore().ListKeys(); len(got) != 4 {
		t.Errorf("two components: got %q, want 4", got)
	}
	if _, err := identity.NewInformer(s.leases, "no label!"); err == nil || !strings.Contains(err.Error(), "no label!") {
		t.Errorf("got %v, want the component refused", err)
	}
}

// TestDeadLeaseGoesInTime has a collector run: the Lease of a dead member is deleted within GCAfter and a period, not earlier, and that of a living one
// is not. Time in which the view was not up to date does not count. R-ID-09, R-ID-10.
func TestDeadLeaseGoesInTime(t *testing.T) {
	t.Parallel()
	const gcAfter, period, slack = 2 * realLiveness, time.Second, 2 * time.Second
	s := onAServer(t)
	s.watch(s.leases, s.member("me", "agent"), "agent")
	collector, err := identity.NewCollector(s.leases, s.view, identity.CollectorConfig{GCAfter: gcAfter, Period: period})
	s.must(err)
	s.run("collector", collector.Run)
	s.put(s.namespace, "lives", "agent")
	s.live("lives")
	began := time.Now()
	s.put(s.namespace, "dead", "agent")
	blind, fresh, last := time.Duration(0), true, began
	s.eventually(func() string {
		now, is := time.Now(), s.view.Freshness().Fresh
		switch {
		case !is && fresh: // what it has counted on trust is taken back
			blind += realLiveness / 2
		case !is:
			blind += now.Sub(last)
		}
		fresh, last = is, now
		if _, err := s.leases.Get(s.ctx, "dead", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the dead Lease is there: %v", err)
		}
		return ""
	})
	if took := time.Since(began); took < gcAfter || took > gcAfter+period+blind+slack {
		t.Errorf("it was deleted after %v, of which the view was blind for %v; want %v and at most %v more", took, blind, gcAfter, period+slack)
	}
	if _, err := s.leases.Get(s.ctx, "lives", metav1.GetOptions{}); err != nil {
		t.Errorf("the Lease of a living one: %v", err)
	}
}

// elect runs a leader election.
func (s *onServer) elect(name string) {
	leads := make(chan struct{})
	config := leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Client: s.admin.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "someone"},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(leads) }, OnStoppedLeading: func() {}},
	}
	s.run("leader election", func(ctx context.Context) error { leaderelection.RunOrDie(ctx, config); return nil })
	<-leads
}

// TestViewOutlivesALostWatch cuts the view off for longer than Liveness, has the world change meanwhile, and has the server say that its
// resourceVersion is too old. I6, R-ID-12.
func TestViewOutlivesALostWatch(t *testing.T) {
	t.Parallel()
	s := onAServer(t)
	var network cable
	watched, err := kubernetes.NewForConfig(network.through(rest.CopyConfig(shared.Env(t).Config())))
	s.must(err)
	for _, name := range []string{"goes", "moves", "stays-1", "stays-2"} {
		s.put(s.namespace, name, "agent")
	}
	s.live("stays-1")
	s.live("stays-2")
	s.watch(watched.CoordinationV1().Leases(s.namespace), s.member("me", "agent"), "agent")
	s.must(s.renew(s.ctx, "goes"))
	s.must(s.renew(s.ctx, "moves"))
	s.eventually(func() string {
		if got := names(s.view.Peers(identity.Alive)); got != "goes me moves stays-1 stays-2" {
			return fmt.Sprintf("alive are %q, want all", got)
		}
		return ""
	})
	network.cut()
	for _, name := range []string{"goes", "moves"} {
		s.must(s.leases.Delete(s.ctx, name, metav1.DeleteOptions{}))
	}
	s.put(s.namespace, "moves", "agent")
	s.passes(realLiveness + 2*time.Second)
	if err := s.view.Healthy(); err == nil {
		t.Error("the view is healthy without a watch")
	}
	network.mend(3)
	s.eventually(func() string { return errorText(s.view.Healthy()) })
	s.eventually(func() string {
		if s.told("Left goes Released") != 1 || s.told("Left moves Released") != 1 || s.told("Joined moves") != 2 {
			return "the deletions were not told"
		}
		return ""
	})
	s.passes(2 * time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if strings.HasPrefix(e, "Left stays") || strings.Contains(e, "Quiet") {
			t.Errorf("it told %q, want nobody to be lost by a lost watch", e)
		}
	}
}
