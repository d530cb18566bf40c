// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// A stageFinder is a PodResponder that finds the pods of one name.
type stageFinder struct {
	stageResponder
	pod    string
	failed error
}

func (f *stageFinder) FindPods(_ context.Context, _ string, pods []drain.PodRef) (map[types.UID]bool, error) {
	found := map[types.UID]bool{}
	for _, p := range pods {
		found[p.UID] = p.Name == f.pod
	}
	return found, f.failed
}

// found has a pod "vm" on n1 that a PodResponder finds, and a neighbour "app" that it does not.
func found(t *testing.T, test func(s *stageTest, r drain.Request, f *stageFinder)) {
	t.Helper()
	f := &stageFinder{stageResponder: stageResponder{answer: stageBeats}, pod: "vm"}
	change := func(o *drain.Options) { o.Responders = map[string]drain.Responder{"finder": f} }
	stage(t, draintest.Options{}, change, func(s *stageTest) {
		owner := s.c.AddWorkload(draintest.Workload{Name: "vm", Replicas: 2, Scale: true})
		own := draintest.OwnedBy(draintest.ReplicaSet, "vm", owner)
		s.c.AddPod("default", "vm", "n1", own)
		s.c.AddPod("default", "app", "n1", own)
		test(s, s.request("n1"), f)
	})
}

// R-DR-15: a pod that a PodResponder finds waits for it without a rule, and is evicted when that declines.
func TestFoundPodWaits(t *testing.T) {
	found(t, func(s *stageTest, r drain.Request, f *stageFinder) {
		end := time.Now().Add(2 * time.Hour)
		s.until(r, 3*time.Hour, "time to pass", func(st drain.Status) bool {
			s.waitsForHook(st)
			return time.Now().After(end)
		})
		f.says(drain.HookAnswer{Progress: drain.HookDeclined, Message: "not this one"}, nil)
		st := s.phase(r, time.Minute, drain.Drained)
		if len(st.Evicted) != 2 {
			t.Errorf("evicted: %v, want both", st.Evicted)
		}
	})
}

// R-DR-15: a PodResponder that is silent is given up after 25 minutes.
func TestFoundPodIsGivenUp(t *testing.T) {
	found(t, func(s *stageTest, r drain.Request, f *stageFinder) {
		f.says(drain.HookAnswer{Progress: drain.HookWorking, Beat: "1"}, nil)
		begin := time.Now()
		s.phase(r, time.Hour, drain.Drained)
		if after := s.vmEvicted().Sub(begin); after < 25*time.Minute || after > 26*time.Minute {
			t.Errorf("evicted after %s, want 25 min", after)
		}
	})
}

// R-DR-15: a policy that ignores what pods say asks no PodResponder.
func TestFoundPodIsIgnored(t *testing.T) {
	found(t, func(s *stageTest, r drain.Request, f *stageFinder) {
		r.Policy.IgnorePodLabels = true
		s.phase(r, time.Minute, drain.Drained)
		if len(f.asked) != 0 {
			t.Errorf("asked %v, want nothing", f.asked)
		}
	})
}

// R-DR-15: while a PodResponder cannot say which pods are its own, nothing is evicted. A release takes back what it may
// have been asked.
func TestFinderThatFails(t *testing.T) {
	found(t, func(s *stageTest, r drain.Request, f *stageFinder) {
		f.failed = errors.New("away")
		for range 3 {
			if _, _, err := s.d.ReconcileRequest(context.Background(), r); err == nil || !strings.Contains(err.Error(), "away") {
				t.Fatalf("got error %v, want that of the responder", err)
			}
		}
		if calls := s.evictions(); len(calls) != 0 {
			t.Errorf("evictions: %v, want none", calls)
		}
		r.Mode = drain.Release
		s.phase(r, time.Minute, drain.Released)
		if len(f.cancelled) != 2 {
			t.Errorf("cancelled: %v, want both pods", f.cancelled)
		}
	})
}

// R-DR-15, R-DR-16: a request to a PodResponder ends in an eviction, so that none stands where nothing may be evicted:
// after the deadline, outside of windows, and of a pod that the policy leaves from then on.
func TestFoundPodIsLetGoOfWhereNothingIsEvicted(t *testing.T) {
	for name, change := range map[string]func(r *drain.Request){
		"deadline": func(r *drain.Request) { r.Deadline = time.Now() },
		"window": func(r *drain.Request) {
			r.Policy.Windows = []drain.Window{{From: time.Now().Add(5 * time.Hour)}}
		},
		"policy": func(r *drain.Request) {
			r.Policy.Rules = []drain.Rule{{Name: "stays", Behavior: drain.BehaviorSkip}}
		},
	} {
		found(t, func(s *stageTest, r drain.Request, f *stageFinder) {
			s.until(r, time.Minute, "the request", func(drain.Status) bool { return len(f.asked) > 0 })
			change(&r)
			s.until(r, time.Hour, "the request taken back", func(drain.Status) bool { return len(f.cancelled) > 0 })
			asked := len(f.asked)
			s.restart()
			s.until(r, time.Hour, "another pass", func(drain.Status) bool { return true })
			s.sleep(time.Minute)
			s.pass(r)
			if len(f.asked) != asked {
				t.Errorf("%s: got %d requests more, want none", name, len(f.asked)-asked)
			}
		})
	}
}
