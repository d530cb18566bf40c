// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// hold is a request to hold n1 for a time from now.
func (s *stageTest) hold(d time.Duration) drain.Request {
	return s.request("n1", func(r *drain.Request) { r.Mode, r.HoldUntil = drain.Hold, time.Now().Add(d) })
}

// renewals are when the Lease was renewed since a time.
func (s *stageTest) renewals(since time.Time) (at []time.Duration) {
	for _, c := range s.c.Log(draintest.Renew) {
		at = append(at, c.Started.Sub(since))
	}
	return at
}

// keep runs a hold in the background.
func (s *stageTest) keep(r drain.Request) <-chan drain.SetStatus {
	done := make(chan drain.SetStatus, 1)
	d := s.d
	go func() {
		st, err := d.Run(s.Context(), drain.Set{Request: r, Groups: [][]string{{"n1"}}}, nil)
		if err != nil && s.Context().Err() == nil {
			s.Errorf("Run: got %v, want nil", err)
		}
		done <- st
	}()
	return done
}

// R-DR-14: the Lease is renewed every 10 s up to the time in the mark and never after, so that a stopped kubelet costs no pod until then,
// and is an ordinary failure afterwards.
func TestHoldRenewsTheLeaseUpToItsEnd(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 3, "n1")
		began := time.Now()
		done := s.keep(s.hold(10 * time.Minute))
		s.c.StopKubelet("n1")
		s.sleep(10*time.Minute - time.Second)
		if !s.c.LiveNode("n1").Spec.Unschedulable {
			t.Error("held node: got it schedulable, want it cordoned")
		}
		if pods := s.c.LivePods("n1"); len(pods) != 3 || pods[0].DeletionTimestamp != nil {
			t.Errorf("pods after 10 min without a kubelet: got %d, want 3 that stay", len(pods))
		}
		if calls := s.c.Log(draintest.Evict, draintest.Delete); len(calls) != 0 {
			t.Errorf("got %v, want no pod touched", calls)
		}
		last := -10 * time.Second
		for _, at := range s.renewals(began) {
			if at-last > 10*time.Second {
				t.Errorf("renewals: got none between %s and %s, want one each 10 s", last, at)
			}
			last = at
		}
		if n := len(s.renewals(began)); n > 61 || last < 9*time.Minute+50*time.Second {
			t.Errorf("renewals: got %d up to %s, want about 60 up to the end", n, last)
		}
		s.sleep(time.Hour)
		st := <-done
		s.wants(st.Nodes[0], drain.HoldEnded, "HoldExpired", "")
		s.wants(s.pass(s.hold(10*time.Minute)), drain.HoldEnded, "HoldExpired", "")
		for _, at := range s.renewals(began) {
			if at >= 10*time.Minute {
				t.Errorf("renewal after %s, want none from 10m0s on", at)
			}
		}
		if pods := s.c.LivePods("n1"); pods[0].DeletionTimestamp == nil {
			t.Error("an hour after the hold: got pods that stay, want the usual end of a lost node")
		}
		r := s.request("n1", func(r *drain.Request) { r.Mode = drain.Release })
		s.phase(r, time.Minute, drain.Released)
		if n := s.c.LiveNode("n1"); n.Spec.Unschedulable || n.Annotations[drain.MarkAnnotation] != "" {
			t.Error("after the release: got a cordon or a mark, want none")
		}
	})
}

// R-DR-14: the end of a hold is in the mark: a restart goes on with it, and a later HoldUntil does not move it.
func TestHoldSurvivesARestartAndIsNotProlonged(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		began := time.Now()
		r := s.hold(5 * time.Minute)
		s.phase(r, time.Minute, drain.Holding)
		s.c.StopKubelet("n1")
		s.restart()
		r.HoldUntil = r.HoldUntil.Add(time.Hour)
		s.keep(r)
		s.sleep(20 * time.Minute)
		at := s.renewals(began)
		if last := at[len(at)-1]; last < 4*time.Minute+49*time.Second || last >= 5*time.Minute {
			t.Errorf("last renewal: got %s, want the last 10 s before 5m0s", last)
		}
	})
}

// R-DR-14: a hold whose agent is silent is given up for good, also over a restart and when the agent comes back.
func TestHoldWithoutHeartbeatIsGivenUpForGood(t *testing.T) {
	var alive, broken bool
	heartbeat := func(_ context.Context, node string) (bool, error) {
		if broken {
			return false, errors.New("no route")
		}
		return alive && node == "n1", nil
	}
	stage(t, draintest.Options{}, func(o *drain.Options) { o.Heartbeat = heartbeat }, func(s *stageTest) {
		alive = true
		r := s.hold(time.Hour)
		s.wants(s.pass(r), drain.Holding, "", "")
		broken = true
		if _, after, err := s.d.ReconcileRequest(s.Context(), r); err == nil || after > 10*time.Second {
			t.Errorf("unknown heartbeat: got %v and %s, want an error and another try within 10 s", err, after)
		}
		if n := len(s.renewals(time.Now())); n != 1 {
			t.Errorf("renewals with an unknown heartbeat: got %d, want the 1 before", n)
		}
		alive, broken = false, false
		s.c.Faults(draintest.On(draintest.PatchNode, 1, draintest.Conflict()))
		if st := s.pass(r); st.Phase == drain.HoldEnded {
			t.Errorf("before it is in the mark: got %s, want another try", stageLine(st))
		}
		s.wants(s.pass(r), drain.HoldEnded, "HoldAbandoned", "")
		alive = true
		s.sleep(time.Minute)
		s.wants(s.pass(r), drain.HoldEnded, "HoldAbandoned", "")
		s.restart()
		s.wants(s.pass(r), drain.HoldEnded, "HoldAbandoned", "")
		if n := len(s.renewals(time.Now())); n != 1 {
			t.Errorf("renewals: got %d, want the 1 before the silence", n)
		}
		if !s.c.LiveNode("n1").Spec.Unschedulable {
			t.Error("node of an abandoned hold: got it schedulable, want it cordoned until it is released")
		}
		r.Maintenance, r.HoldUntil = "m2", time.Now().Add(time.Hour)
		s.phase(r, time.Minute, drain.Holding)
	})
}

// R-DR-14: a hold that is too long, or over before it begins, is refused without a write, and Run does not try again.
func TestHoldOutOfBoundsIsRefused(t *testing.T) {
	for _, d := range []time.Duration{drain.MaxHold + 1, 0, -time.Hour} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			r := s.hold(d)
			st, _, err := s.d.ReconcileRequest(s.Context(), r)
			if !errors.Is(err, drain.ErrOption) {
				t.Errorf("hold for %s: got %v, want it refused", d, err)
			}
			s.wants(st, drain.Failed, "", drain.OutcomeFailed)
			if _, err := s.d.Run(s.Context(), drain.Set{Request: r, Groups: [][]string{{"n1"}}}, nil); !errors.Is(err, drain.ErrOption) {
				t.Errorf("Run of a hold for %s: got %v, want it refused", d, err)
			}
			if calls := s.c.Log(); len(calls) != 0 {
				t.Errorf("requests: got %v, want none", calls)
			}
			s.wants(s.pass(s.hold(drain.MaxHold)), drain.Holding, "", "")
		})
	}
}

// R-DR-14: a renewal that fails is tried again after 10 s at the latest, so that the node survives three of them.
func TestFailedRenewalIsTriedAgain(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		fault := draintest.On(draintest.Renew, 5, draintest.Unavailable())
		fault.Times = 3
		s.c.Faults(fault)
		s.keep(s.hold(10 * time.Minute))
		s.c.StopKubelet("n1")
		s.sleep(9 * time.Minute)
		if n := s.c.LiveNode("n1"); n.Status.Conditions[0].Status != "True" {
			t.Errorf("node after three failed renewals: got Ready %s, want True", n.Status.Conditions[0].Status)
		}
	})
}
