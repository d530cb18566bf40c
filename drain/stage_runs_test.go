// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// A runsCase is what several runs under one holder want of n1 at the same time.
type runsCase struct {
	name   string
	modes  []drain.Mode // of the runs, in turn
	differ bool         // each run has a maintenance of its own
	shared bool         // all runs are in one process, on one Drainer
	ends   int          // how many of two runs end as Superseded
}

// endlessWrites stops a storm before it fills the memory: time stands still in a bubble while writes go on.
const endlessWrites = 300

// runTogether starts the runs, a second apart, and calls test after a minute with the last status of each.
func (s *stageTest) runTogether(c runsCase, runs int, test func(last []drain.Status)) {
	ctx, cancel := context.WithCancel(s.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var mu sync.Mutex
	last := make([]drain.Status, runs)
	for i := range runs {
		if !c.shared {
			s.restart()
		}
		r, d := s.request("n1"), s.d
		r.Mode, r.HoldUntil = c.modes[i%len(c.modes)], time.Now().Add(time.Hour)
		if c.differ {
			r.Maintenance = fmt.Sprint("m", i)
		}
		report := func(st drain.SetStatus) {
			mu.Lock()
			defer mu.Unlock()
			last[i] = st.Nodes[0]
			if len(s.c.Log(draintest.PatchNode)) > endlessWrites {
				cancel()
			}
		}
		all.Go(func() { _, _ = d.Run(ctx, drain.Set{Request: r, Groups: [][]string{{"n1"}}}, report) })
		s.sleep(time.Second)
	}
	s.sleep(time.Minute)
	mu.Lock()
	seen := append([]drain.Status(nil), last...)
	mu.Unlock()
	test(seen)
}

// wantFewWrites fails the test where a node was written more than a start allows, or later more than once in a minute.
func (s *stageTest) wantFewWrites(runs int) {
	s.Helper()
	if got, most := len(s.c.Log(draintest.PatchNode)), 2*runs+2; got > most {
		s.Errorf("writes of the node in the first minute: got %d, want at most %d", got, most)
	}
	s.sleep(5 * time.Minute) // the longest intervals are reached
	s.c.ClearLog()
	s.sleep(20 * time.Minute)
	if got := len(s.c.Log(draintest.PatchNode)); got > 20 {
		s.Errorf("writes of the node in 20 minutes: got %d, want at most one a minute", got)
	}
}

// Two and ten runs under one holder do not write a node again and again, whatever each of them wants: later runs go
// on, and the others end with a message that names what has taken the node, and since when.
func TestRunsOfOneHolderWriteSeldom(t *testing.T) {
	for _, c := range []runsCase{
		{name: "drain", modes: []drain.Mode{drain.Drain}},
		{name: "drains for maintenances", modes: []drain.Mode{drain.Drain}, differ: true, ends: 1},
		{name: "drain and hold", modes: []drain.Mode{drain.Drain, drain.Hold}, ends: 1},
		{name: "hold and drain", modes: []drain.Mode{drain.Hold, drain.Drain}, ends: 1},
		{name: "drain and hold for maintenances", modes: []drain.Mode{drain.Drain, drain.Hold}, differ: true, ends: 1},
		{name: "drain and cordon", modes: []drain.Mode{drain.Drain, drain.Cordon}},
		{name: "one process", modes: []drain.Mode{drain.Drain}, shared: true},
		{name: "one process, maintenances", modes: []drain.Mode{drain.Drain}, differ: true, shared: true},
		{name: "one process, drain and hold", modes: []drain.Mode{drain.Drain, drain.Hold}, shared: true},
	} {
		for _, runs := range []int{2, 10} {
			t.Run(fmt.Sprintf("%s, %d", c.name, runs), func(t *testing.T) {
				stage(t, draintest.Options{}, nil, func(s *stageTest) {
					s.stuck()
					s.runTogether(c, runs, func(last []drain.Status) {
						ended := 0
						for _, st := range last {
							if st.Phase != drain.Failed {
								continue
							}
							ended++
							s.wants(st, drain.Failed, drain.Superseded, drain.OutcomeFailed)
							if !strings.Contains(st.Message, "since, at 2000-01-01T00:00:") {
								t.Errorf("message: got %q, want it to say since when another run has the node", st.Message)
							}
						}
						if runs == 2 && ended != c.ends {
							t.Errorf("got %d runs that ended as Superseded, want %d: %s", ended, c.ends, stageLine(last[0]))
						}
						s.wantFewWrites(runs)
					})
					s.sleep(time.Second)
					s.clean("n1")
				})
			})
		}
	}
}

// The clock of the first of several runs for one maintenance goes on, so that a step comes at its time.
func TestRunsOfOneMaintenanceKeepTheClock(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		begun := time.Now()
		s.runTogether(runsCase{modes: []drain.Mode{drain.Drain}}, 10, func(last []drain.Status) {
			for i, st := range last {
				if !st.Started.Equal(begun) {
					t.Errorf("run %d: got the start %s, want %s", i, st.Started, begun)
				}
			}
		})
	})
}

// A client that undoes a drain again and again is answered at longer and longer intervals, and the status says why the
// drain stands still. When that client gives in, the drain goes on.
func TestEntryThatAnotherClientRemovesIsWrittenSeldom(t *testing.T) {
	for name, undo := range map[string]func(*corev1.Node){
		"mark":            func(n *corev1.Node) { delete(n.Annotations, drain.MarkAnnotation) },
		"mark and cordon": func(n *corev1.Node) { n.Spec.Unschedulable, n.Annotations = false, nil },
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, draintest.Options{}, nil, func(s *stageTest) {
				s.stuck()
				told := false
				s.runTogether(runsCase{modes: []drain.Mode{drain.Drain}}, 1, func([]drain.Status) {})
				r := s.request("n1")
				s.until(r, 2*time.Minute, "entry", func(st drain.Status) bool { return st.Phase == drain.Draining })
				s.c.ClearLog()
				end := time.Now().Add(20 * time.Minute)
				for time.Now().Before(end) {
					if _, ok := s.c.LiveNode("n1").Annotations[drain.MarkAnnotation]; ok {
						s.c.UpdateNode("n1", undo)
					}
					s.sleep(time.Second)
					st := s.pass(r)
					told = told || strings.Contains(st.Message, "removed")
				}
				if got := len(s.c.Log(draintest.PatchNode)); got > 20 {
					t.Errorf("writes of the node in 20 minutes: got %d, want at most 20", got)
				}
				if !told {
					t.Error("got no status that says that another client has removed the entry")
				}
				s.until(r, 5*time.Minute, "drain", func(st drain.Status) bool { return st.Phase == drain.Draining })
				r.Mode = drain.Release
				s.phase(r, time.Minute, drain.Released)
				s.sleep(time.Second)
				s.clean("n1")
			})
		})
	}
}

// A run that ends while it waits to write its mark again gives the node back: nothing else knows of its cordon.
func TestRunThatWaitsForItsMarkGivesTheNodeBack(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		var mu sync.Mutex
		var last drain.Status
		report := func(st drain.SetStatus) {
			mu.Lock()
			defer mu.Unlock()
			last = st.Nodes[0]
		}
		var run sync.WaitGroup
		run.Go(func() { _, _ = s.d.Run(ctx, drain.Set{Request: s.request("n1"), Groups: [][]string{{"n1"}}}, report) })
		for range 5 {
			s.sleep(time.Second)
			s.c.UpdateNode("n1", func(n *corev1.Node) { delete(n.Annotations, drain.MarkAnnotation) })
		}
		s.sleep(time.Second)
		mu.Lock()
		s.wants(last, drain.Paused, drain.Superseded, "")
		mu.Unlock()
		if n := s.c.LiveNode("n1"); !n.Spec.Unschedulable || n.Annotations[drain.MarkAnnotation] != "" {
			t.Fatalf("got unschedulable %v, annotations %v, want a cordon without its mark", n.Spec.Unschedulable, n.Annotations)
		}
		cancel()
		run.Wait()
		s.sleep(time.Second)
		s.clean("n1")
	})
}
