// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// A stageTest is a Drainer on a cluster in memory with the nodes n1, n2 and n3, in a bubble.
type stageTest struct {
	*testing.T
	c      *draintest.Cluster
	d      *drain.Drainer
	events *stageEvents
	change func(*drain.Options)
}

// stage runs a test in a bubble. Change, which may be nil, completes the options of its Drainers.
func stage(t *testing.T, o draintest.Options, change func(*drain.Options), test func(s *stageTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := draintest.Start(t, o)
		for _, n := range []string{"n1", "n2", "n3"} {
			c.AddNode(n)
		}
		s := &stageTest{T: t, c: c, events: &stageEvents{}, change: change}
		s.restart()
		test(s)
	})
}

// restart is the death of the process and the start of the next one: nothing but the cluster is left.
func (s *stageTest) restart() {
	s.Helper()
	o := drain.Options{Cache: s.c, Client: s.c, Leases: s.c, Recorder: s.events}
	if s.change != nil {
		s.change(&o)
	}
	d, err := drain.New(o)
	if err != nil {
		s.Fatalf("New: got %v, want a Drainer", err)
	}
	s.d = d
}

// pass is one pass that has to be able to run.
func (s *stageTest) pass(r drain.Request) drain.Status {
	s.Helper()
	st, _, err := s.d.ReconcileRequest(s.Context(), r)
	if err != nil {
		s.Fatalf("Reconcile: got %v, want a pass", err)
	}
	return st
}

// until reconciles as a controller does, when the pass has asked for it or something has changed, until the status is as wanted.
func (s *stageTest) until(r drain.Request, limit time.Duration, what string, done func(drain.Status) bool) drain.Status {
	s.Helper()
	end := time.Now().Add(limit)
	wake := make(chan struct{}, 1)
	defer s.d.Watch(func(string) {
		select {
		case wake <- struct{}{}:
		default:
		}
	})()
	for {
		st, after, err := s.d.ReconcileRequest(s.Context(), r)
		if err != nil {
			s.Fatalf("Reconcile: got %v, want a pass", err)
		}
		if done(st) {
			return st
		}
		left := time.Until(end)
		if left <= 0 {
			s.Fatalf("after %s: got %s, want %s", limit, stageLine(st), what)
		}
		timer := time.NewTimer(min(cmp.Or(after, left), left))
		select {
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// phase is until for a phase.
func (s *stageTest) phase(r drain.Request, limit time.Duration, phase drain.Phase) drain.Status {
	s.Helper()
	return s.until(r, limit, "phase "+string(phase), func(st drain.Status) bool { return st.Phase == phase })
}

// sleep lets time pass with nobody reconciling.
func (s *stageTest) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// request is a Drain of a node by one holder.
func (s *stageTest) request(node string, change ...func(*drain.Request)) drain.Request {
	r := drain.Request{Node: node, Holder: "test", Maintenance: "m1", Mode: drain.Drain}
	for _, c := range change {
		c(&r)
	}
	return r
}

// web adds a workload whose pods are on the nodes.
func (s *stageTest) web(name string, replicas int, on ...string) {
	s.c.AddWorkload(draintest.Workload{Name: name, Replicas: replicas, On: on})
}

// evictions are the eviction requests so far.
func (s *stageTest) evictions() []draintest.Call { return s.c.Log(draintest.Evict) }

// clean fails the test if anything of ours is left on a node, or it is cordoned. R-DR-09.
func (s *stageTest) clean(name string) {
	s.Helper()
	s.unmarked(name)
	for _, c := range s.c.LiveNode(name).Status.Conditions {
		if c.Type != corev1.NodeReady {
			s.Errorf("node %q: got condition %s, want only Ready", name, c.Type)
		}
	}
}

// unmarked checks that a node carries no mark, cordon or taint.
func (s *stageTest) unmarked(name string) {
	s.Helper()
	n := s.c.LiveNode(name)
	if n.Spec.Unschedulable {
		s.Errorf("node %q: got it cordoned, want it schedulable", name)
	}
	if mark, ok := n.Annotations[drain.MarkAnnotation]; ok {
		s.Errorf("node %q: got the mark %s, want none", name, mark)
	}
	if len(n.Spec.Taints) > 0 {
		s.Errorf("node %q: got taints %v, want none", name, n.Spec.Taints)
	}
}

// onlyPlanned checks that n1 carries nothing of a drain but that its maintenance is planned.
func (s *stageTest) onlyPlanned() {
	s.Helper()
	s.unmarked("n1")
	s.conditions("DrainInProgress=False Drained=False MaintenancePlanned=True MaintenanceInProgress=False")
}

// accepted are the evictions that were accepted.
func (s *stageTest) accepted() []draintest.Call {
	return slices.DeleteFunc(s.evictions(), func(c draintest.Call) bool { return c.Err != nil })
}

// wants fails the test unless the status has this phase, reason and outcome.
func (s *stageTest) wants(st drain.Status, phase drain.Phase, reason drain.Reason, outcome drain.Outcome) {
	s.Helper()
	if st.Phase != phase || st.Reason != reason || st.Outcome != outcome {
		s.Fatalf("got %s, want phase %q, reason %q, outcome %q", stageLine(st), phase, reason, outcome)
	}
}

// blocker is the one of a pod by its name.
func (s *stageTest) blocker(st drain.Status, name string) drain.Blocker {
	s.Helper()
	i := slices.IndexFunc(st.Blockers, func(b drain.Blocker) bool { return b.Name == name })
	if i < 0 {
		s.Fatalf("blockers: got %s, want pod %q among them", stageLine(st), name)
	}
	return st.Blockers[i]
}

// stageLine says a status in one line.
func stageLine(st drain.Status) string {
	text, err := json.Marshal(st)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// stageEvents is a Recorder.
type stageEvents struct {
	mu   sync.Mutex
	list []string
}

// Eventf implements [drain.Recorder].
func (e *stageEvents) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, kind+" "+reason+": "+fmt.Sprintf(note, args...))
}

// all returns the reasons of the events so far, with their types.
func (e *stageEvents) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []string
	for _, line := range e.list {
		head, _, _ := strings.Cut(line, ":")
		out = append(out, head)
	}
	return out
}

// stageCancelled is a context that has ended.
func stageCancelled(s *stageTest) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	return ctx, cancel
}
