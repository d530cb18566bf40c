// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// pulseLeases fails to renew the Lease of n1 as long as it is told to.
type pulseLeases struct {
	drain.LeaseKeeper
	broken *atomic.Bool
}

var errPulse = errors.New("the node has no Lease")

// Renew implements [drain.LeaseKeeper].
func (l pulseLeases) Renew(ctx context.Context, node string) error {
	if l.broken.Load() && node == "n1" {
		return errPulse
	}
	return l.LeaseKeeper.Renew(ctx, node)
}

// pulseless fails the test unless a hold says, with an error, that it does not hold.
func (s *stageTest) pulseless(when string, r drain.Request, want error) {
	s.Helper()
	st, after, err := s.d.ReconcileRequest(s.Context(), r)
	if !errors.Is(err, want) || after <= 0 || after > 10*time.Second {
		s.Errorf("%s: got %v and %s, want %v and another try within 10s", when, err, after, want)
	}
	if st.Phase != drain.Pending || st.Reason == "" && st.Message == "" {
		s.Errorf("%s: got %s, want it Pending and to say why", when, stageLine(st))
	}
}

// R-DR-14: whoever hears Holding may stop the kubelet: it is said only once this process has renewed the Lease itself.
func TestHoldIsNotSaidBeforeTheLeaseIsRenewed(t *testing.T) {
	var broken atomic.Bool
	stage(t, draintest.Options{}, func(o *drain.Options) { o.Leases = pulseLeases{o.Leases, &broken} }, func(s *stageTest) {
		broken.Store(true)
		r := s.hold(time.Hour)
		s.pulseless("first pass", r, errPulse)
		s.pulseless("second pass", r, errPulse)
		broken.Store(false)
		s.wants(s.pass(r), drain.Holding, "", "")
		s.wants(s.pass(r), drain.Holding, "", "")
		broken.Store(true)
		s.restart()
		s.pulseless("first pass of the next process", r, errPulse)
		broken.Store(false)
		s.wants(s.pass(r), drain.Holding, "", "")
	})
}

// R-DR-14: nor is it said while nobody knows whether the agent on the node lives.
func TestHoldIsNotSaidBeforeTheHeartbeatIsKnown(t *testing.T) {
	heartbeat := func(context.Context, string) (bool, error) { return false, errPulse }
	stage(t, draintest.Options{}, func(o *drain.Options) { o.Heartbeat = heartbeat }, func(s *stageTest) {
		s.pulseless("first pass", s.hold(time.Hour), errPulse)
		if n := len(s.renewals(time.Now())); n != 0 {
			t.Errorf("renewals: got %d, want none", n)
		}
	})
}

// pulseHangs is a heartbeat that n1 alone answers. It notes how long it was let hang.
func pulseHangs(longest *atomic.Int64) func(*drain.Options) {
	return func(o *drain.Options) {
		o.Heartbeat = func(ctx context.Context, node string) (bool, error) {
			if node == "n1" {
				return true, nil
			}
			began := time.Now()
			timer := time.NewTimer(30 * time.Minute)
			defer timer.Stop()
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			if took := int64(time.Since(began)); took > longest.Load() {
				longest.Store(took)
			}
			return false, ctx.Err()
		}
	}
}

// R-DR-14: a heartbeat that hangs is cut off after some seconds, and does not keep the Leases of the other nodes of the set from being
// renewed in time, however many of them hang.
func TestHeartbeatThatHangsCostsTheOthersNothing(t *testing.T) {
	for _, hanging := range []int{1, 40} {
		var longest atomic.Int64
		stage(t, draintest.Options{}, pulseHangs(&longest), func(s *stageTest) {
			longest.Store(0)
			s.web("web", 2, "n1")
			nodes := []string{"n1"}
			for i := range hanging {
				name := fmt.Sprintf("h%02d", i)
				s.c.AddNode(name)
				nodes = append(nodes, name)
			}
			ctx, cancel := context.WithCancel(s.Context())
			defer cancel()
			set := drain.Set{Request: s.hold(time.Hour), Groups: [][]string{nodes}}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = s.d.Run(ctx, set, nil)
			}()
			s.c.StopKubelet("n1")
			lost := s.pulseLost(15 * time.Minute)
			if lost > 0 {
				t.Errorf("%d hang: got node n1 lost for %s of 15m, want it Ready all the time", hanging, lost)
			}
			for _, p := range s.c.LivePods("n1") {
				if p.DeletionTimestamp != nil {
					t.Errorf("%d hang: got pod %s deleted, want it to stay", hanging, p.Name)
				}
			}
			if got := time.Duration(longest.Load()); got <= 0 || got > 10*time.Second {
				t.Errorf("%d hang: got a heartbeat that hung for %s, want it cut off within 10s", hanging, got)
			}
			cancel()
			<-done
		})
	}
}

// A pulseDeaf is a function of the embedder that heeds no context: about n1 it answers only when it may.
type pulseDeaf struct {
	calls atomic.Int32
	may   chan struct{}
}

func (p *pulseDeaf) ask(node string) (bool, error) {
	if node == "n1" {
		p.calls.Add(1)
		<-p.may
	}
	return true, nil
}

// R-DR-14: a heartbeat that does not heed its context neither hangs the pass nor keeps the Leases of other nodes from being renewed; it is
// called once, not again and again, until it has returned, and then counts again.
func TestHeartbeatThatHeedsNoContextIsCutOff(t *testing.T) {
	var deaf pulseDeaf
	change := func(o *drain.Options) {
		o.Heartbeat = func(_ context.Context, node string) (bool, error) { return deaf.ask(node) }
	}
	stage(t, draintest.Options{}, change, func(s *stageTest) {
		deaf.may = make(chan struct{})
		ctx, cancel := context.WithCancel(s.Context())
		done := make(chan error, 1)
		set := drain.Set{Request: s.hold(time.Hour), Groups: [][]string{{"n1", "n2"}}}
		go func() {
			_, err := s.d.Run(ctx, set, nil)
			done <- err
		}()
		s.sleep(10 * time.Minute)
		renewed := map[string]int{}
		for _, c := range s.c.Log(draintest.Renew) {
			renewed[c.Object]++
		}
		if renewed["n1"] != 0 || renewed["n2"] < 30 {
			t.Errorf("renewals in 10m: got %v, want none of n1 and at least 30 of n2", renewed)
		}
		if n := deaf.calls.Load(); n != 1 {
			t.Errorf("calls about n1 that have not returned: got %d, want 1", n)
		}
		close(deaf.may)
		s.sleep(20 * time.Second)
		if n := len(s.renewals(time.Now())); n == 0 || deaf.calls.Load() < 2 {
			t.Errorf("after it has returned: got %d calls, want it called again", deaf.calls.Load())
		}
		s.wants(s.pass(s.hold(time.Hour)), drain.Holding, "", "")
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: got %v, want %v", err, context.Canceled)
		}
	})
}

// R-DR-16: the same goes for the proof that a machine is off: pods that can leave do.
func TestProofThatHeedsNoContextIsCutOff(t *testing.T) {
	var deaf pulseDeaf
	change := func(o *drain.Options) {
		o.PoweredOff = func(_ context.Context, n *corev1.Node) (bool, error) { return deaf.ask(n.Name) }
	}
	stage(t, draintest.Options{}, change, func(s *stageTest) {
		deaf.may = make(chan struct{})
		defer close(deaf.may)
		s.stuck()
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.Escalation = []drain.Escalation{{After: time.Second, Step: drain.StepOutOfService}}
		})
		s.pass(r)
		s.sleep(10 * time.Second)
		s.web("late", 2, "n1")
		for range 5 {
			began := time.Now()
			if _, _, err := s.d.ReconcileRequest(s.Context(), r); err == nil || time.Since(began) > 10*time.Second {
				t.Errorf("pass: got %v after %s, want an error within 10s", err, time.Since(began))
			}
			s.sleep(10 * time.Second)
		}
		if n := len(s.accepted()); n != 4 || deaf.calls.Load() != 1 {
			t.Errorf("got %d evictions and %d calls, want 4 of the pods that can leave, and 1", n, deaf.calls.Load())
		}
	})
}

// pulseLost is for how long n1 was not Ready.
func (s *stageTest) pulseLost(during time.Duration) (lost time.Duration) {
	for range int(during / time.Second) {
		s.sleep(time.Second)
		for _, c := range s.c.LiveNode("n1").Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				lost += time.Second
			}
		}
	}
	return lost
}
