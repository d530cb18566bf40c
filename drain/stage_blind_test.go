// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

var errBlind = errors.New("the informer of pods has stopped")

// wantBlind checks that an error is a CacheError with the cause.
func (s *stageTest) wantBlind(what string, err error) {
	s.Helper()
	var blind *drain.CacheError
	if !errors.As(err, &blind) || !errors.Is(err, errBlind) {
		s.Errorf("%s over a blind cache: got error %v, want a CacheError with its cause", what, err)
	}
}

// TestBlindCacheIsNotAnEmptyNode shows that a cache which reports an error stops each decision that would take its
// answer for the cluster's: the dry run, the beginning of a drain, its evictions and its end. The drain goes on when
// the error has gone.
func TestBlindCacheIsNotAnEmptyNode(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.c.AddWorkload(draintest.Workload{Namespace: "default", Name: "web", Replicas: 2, On: []string{"n1", "n2"}})
		s.sleep(time.Minute)
		r := s.request("n1")
		s.c.FailCache(errBlind)
		_, err := s.d.Plan(s.Context(), r.Policy, "n1")
		s.wantBlind("Plan", err)
		_, err = s.d.Preflight(s.Context(), r.Policy, "n1")
		s.wantBlind("Preflight", err)
		s.c.ClearLog()
		for _, mode := range []drain.Mode{drain.Drain, drain.Cordon, drain.Release} { // no Node is not a Node that has gone
			st, _, err := s.d.ReconcileRequest(s.Context(), s.request("n1", func(r *drain.Request) { r.Mode = mode }))
			s.wantBlind(string(mode), err)
			if st.Phase != drain.Pending {
				s.Errorf("%s over a blind cache: got phase %s, want Pending", mode, st.Phase)
			}
		}
		if calls := s.c.Log(); len(calls) != 0 {
			s.Errorf("over a blind cache: got %v, want no request", calls)
		}
		s.c.FailCache(nil)
		if st := s.pass(r); st.Phase != drain.Draining {
			s.Errorf("got %s, want it Draining", stageLine(st))
		}
		s.c.FailCache(errBlind)
		s.c.ClearLog()
		for range 5 { // longer than the settle time
			s.sleep(5 * time.Second)
			st, after, err := s.d.ReconcileRequest(s.Context(), r)
			s.wantBlind("a drain under way", err)
			if st.Phase == drain.Drained || st.Phase == drain.Settling || after <= 0 {
				s.Errorf("over a blind cache: got %s, again after %s, want it not empty and tried again", stageLine(st), after)
			}
		}
		if calls := s.c.Log(draintest.Evict, draintest.PatchNode); len(calls) != 0 {
			s.Errorf("over a blind cache: got %v, want no write", calls)
		}
		s.c.FailCache(nil)
		s.drainsInTheEnd(r)
	})
}

// drainsInTheEnd makes passes until the drain is done.
func (s *stageTest) drainsInTheEnd(r drain.Request) {
	s.Helper()
	for range 60 {
		st, _, err := s.d.ReconcileRequest(s.Context(), r)
		if err == nil && st.Phase == drain.Drained {
			return
		}
		s.sleep(time.Second)
	}
	s.Error("the node is not drained after a minute")
}

// TestPlanWaitsForALateCache shows that a pod which the cache is about to show is no error of a dry run.
func TestPlanWaitsForALateCache(t *testing.T) {
	stage(t, draintest.Options{CacheLag: 300 * time.Millisecond}, nil, func(s *stageTest) {
		s.sleep(time.Minute)
		s.c.AddPod("default", "late", "n1")
		plan, err := s.d.Plan(s.Context(), drain.Policy{}, "n1", "n2")
		if err != nil || len(plan.Nodes[0].Pods) != 1 {
			s.Errorf("got %+v and error %v, want the late pod in the plan", plan, err)
		}
		if _, err := s.d.Plan(s.Context(), drain.Policy{}, "n1", "n9"); !errors.Is(err, drain.ErrNodeNotFound) {
			s.Errorf("got error %v, want ErrNodeNotFound", err)
		}
	})
}

// checkNotFound checks what Reconcile returned and reported for a Node that does not exist.
func (s *stageTest) checkNotFound(node string, after time.Duration, err error, last drain.Status) {
	s.Helper()
	var typed *drain.NodeNotFoundError
	if !errors.Is(err, drain.ErrNodeNotFound) || !errors.As(err, &typed) || typed.Node != node {
		s.Errorf("no such node: got error %v, want ErrNodeNotFound for %s", err, node)
	}
	if after != 0 || last.Phase != drain.Failed || last.Reason != drain.NodeNotFound {
		s.Errorf("no such node: got %s and status %s, want Failed", after, stageLine(last))
	}
}

// reconcileUntilIdle calls Reconcile when it asks for it, until it waits for a trigger.
func (s *stageTest) reconcileUntilIdle(node string) {
	s.Helper()
	for range 60 {
		after, err := s.d.Reconcile(s.Context(), node)
		if err != nil {
			s.Fatalf("got error %v", err)
		}
		if after == 0 {
			return
		}
		s.sleep(after)
	}
}

// TestReconcileByKey shows the shape that a controller calls: the request comes from a lookup, the status goes to a
// sink, and a Node that does not exist is an error that can be told from others.
func TestReconcileByKey(t *testing.T) {
	wanted := map[string]drain.Request{}
	var reported []drain.Status
	lookup, sink := error(nil), error(nil)
	change := func(o *drain.Options) {
		o.Requests = func(_ context.Context, node string) (drain.Request, bool, error) {
			r, ok := wanted[node]
			return r, ok, lookup
		}
		o.Report = func(_ context.Context, st drain.Status) error {
			reported = append(reported, st)
			return sink
		}
	}
	stage(t, draintest.Options{}, change, func(s *stageTest) {
		s.c.AddWorkload(draintest.Workload{Namespace: "default", Name: "web", Replicas: 2, On: []string{"n1", "n2"}})
		s.sleep(time.Minute)
		s.c.ClearLog()
		if after, err := s.d.Reconcile(s.Context(), "n1"); after != 0 || err != nil || len(reported) != 0 || len(s.c.Log()) != 0 {
			s.Errorf("nothing wanted: got %s, error %v, reports %v and requests %v, want none", after, err, reported, s.c.Log())
		}
		wanted["n1"] = s.request("")
		s.reconcileUntilIdle("n1")
		if last := reported[len(reported)-1]; last.Node != "n1" || last.Phase != drain.Drained {
			s.Errorf("got %s, want n1 Drained", stageLine(last))
		}
		wanted["n9"] = s.request("")
		after, err := s.d.Reconcile(s.Context(), "n9")
		s.checkNotFound("n9", after, err, reported[len(reported)-1])
		wanted["n2"] = s.request("", func(r *drain.Request) { r.NodeUID = "another" })
		_, err = s.d.Reconcile(s.Context(), "n2")
		var gone *drain.NodeNotFoundError
		if !errors.As(err, &gone) || gone.Node != "n2" || gone.UID != "another" || !strings.Contains(err.Error(), `"another"`) {
			s.Errorf("a Node with another UID: got error %v, want a NodeNotFoundError that names the UID", err)
		}
		sink = errors.New("the object has changed")
		if _, err := s.d.Reconcile(s.Context(), "n1"); !errors.Is(err, sink) {
			s.Errorf("got error %v, want that of the sink", err)
		}
		n := len(reported)
		lookup = errors.New("no answer")
		if _, err := s.d.Reconcile(s.Context(), "n1"); !errors.Is(err, lookup) || len(reported) != n {
			s.Errorf("got error %v, want that of the lookup and no status", err)
		}
	})
}

// TestNewNamesAllThatIsMissing shows that one error has all missing options with their remedies, for nil and for a nil
// pointer in an interface.
func TestNewNamesAllThatIsMissing(t *testing.T) {
	var none *draintest.Cluster
	for _, o := range []drain.Options{{}, {Cache: none, Client: none}} {
		_, err := drain.New(o)
		const want = "drain.New: Options.Cache is required (see drain/kube.NewCache); Options.Client is required (see drain/kube.NewClient)"
		if !errors.Is(err, drain.ErrOption) || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	c := draintest.New(draintest.Options{})
	_, err := drain.New(drain.Options{Cache: c, Client: c, Responders: map[string]drain.Responder{"a": nil, "": nil}})
	for _, want := range []string{`Options.Responders["a"] is required`, "empty name"} {
		if !errors.Is(err, drain.ErrOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
	d, err := drain.New(drain.Options{Cache: c, Client: c})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Reconcile(t.Context(), "n1"); !errors.Is(err, drain.ErrOption) || !strings.Contains(err.Error(), "Options.Requests is required") {
		t.Errorf("got %v, want it to miss Options.Requests", err)
	}
}

// TestRunEndsWithItsCache shows that Run does not wait over a cache that has stopped, and returns its error within a
// second.
func TestRunEndsWithItsCache(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.c.AddPod("default", "debug", "n1") // stays
		s.sleep(time.Minute)
		stopped := time.Now()
		go func() {
			<-time.After(10 * time.Minute)
			stopped = time.Now()
			s.c.FailCache(fmt.Errorf("pods: %w", drain.ErrCacheStopped))
		}()
		_, err := s.d.Run(s.Context(), drain.Set{Groups: [][]string{{"n1"}}, Request: s.request("")}, nil)
		var blind *drain.CacheError
		if took := time.Since(stopped); !errors.As(err, &blind) || !errors.Is(err, drain.ErrCacheStopped) || took > time.Second {
			s.Errorf("after %s: got error %v, want that of the cache within a second", took, err)
		}
		if !s.c.LiveNode("n1").Spec.Unschedulable {
			s.Error("got the node schedulable, want it as it was when the cache stopped")
		}
	})
}
