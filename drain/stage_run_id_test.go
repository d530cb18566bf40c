// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// A runner is one run of a program that drains n1 for the holder that all share.
type runner struct {
	d *drain.Drainer
	r drain.Request
}

// newRunner starts a program. Each has a maintenance of its own, as a command's have, or all the same.
func (s *stageTest) newRunner(run string, change ...func(*drain.Request)) *runner {
	s.restart()
	r := s.request("n1", change...)
	r.Run, r.Maintenance = run, r.Maintenance+run
	return &runner{s.d, r}
}

// sameMaintenance is for runs that are all given one name.
func sameMaintenance(x *runner) { x.r.Maintenance = "m1" }

// pass is one pass of the runner.
func (s *stageTest) passOf(x *runner) drain.Status {
	s.Helper()
	s.d = x.d
	return s.pass(x.r)
}

// writes are the writes to nodes since the log was cleared.
func (s *stageTest) writes() []draintest.Call { return s.c.Log(draintest.PatchNode) }

// Two runs, and ten, of one holder, with names of their own for the maintenance or with one name: the first drains, its
// clocks go on, the others are refused with the first's name and write nothing. Of the first, too, no minute sees more
// than one write.
func TestRunsOfOneHolderDoNotFight(t *testing.T) {
	for _, count := range []int{2, 10} {
		for _, same := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d runs, one maintenance %v", count, same), func(t *testing.T) {
				stage(t, draintest.Options{}, nil, func(s *stageTest) {
					s.stuck()
					escalates := func(r *drain.Request) {
						r.Policy.Escalation = []drain.Escalation{{After: 4 * time.Minute, Step: drain.StepDelete}}
					}
					var runs []*runner
					for i := range count {
						runs = append(runs, s.newRunner(fmt.Sprintf("run-%d", i), escalates))
						if same {
							sameMaintenance(runs[i])
						}
					}
					began := s.passOf(runs[0]).Started
					first := `run "run-0" of holder "test" has node "n1" since ` + began.UTC().Format(time.RFC3339)
					s.sleep(time.Second)
					s.c.ClearLog()
					for minute := range 5 {
						before := len(s.writes())
						for range 20 {
							for i, x := range runs {
								st := s.passOf(x)
								if len(s.c.Log(draintest.Delete)) > 0 {
									return // what was announced has come
								}
								s.wantRefusedOrOn(i, st, first, began)
							}
							s.sleep(3 * time.Second)
						}
						if n := len(s.writes()) - before; n > 1 {
							t.Errorf("minute %d: got %d writes of the node, want at most one: %v", minute, n, s.writes())
						}
					}
					t.Error("got no deletion, want the announced step of the first run taken")
				})
			})
		}
	}
}

// wantRefusedOrOn checks that the first of some runs goes on, and that the others are told of it.
func (s *stageTest) wantRefusedOrOn(i int, st drain.Status, first string, began time.Time) {
	s.Helper()
	switch {
	case i > 0 && (st.Phase != drain.Failed || st.Reason != drain.HeldByOtherRun):
		s.Fatalf("run %d: got %s, want it refused", i, stageLine(st))
	case i > 0 && !strings.Contains(st.Message, first):
		s.Fatalf("run %d: got the message %q, want the first run and since when", i, st.Message)
	case i == 0 && !st.Started.Equal(began):
		s.Fatalf("the first run: got it started at %s, want %s", st.Started, began)
	}
}

// A run takes a node over where it is told to, once; the drain of the same maintenance goes on with its clocks. The run
// before it ends, does not take the node back, and gives nothing back of it.
func TestRunTakesOver(t *testing.T) {
	for _, same := range []bool{false, true} {
		for _, mode := range []drain.Mode{drain.Drain, drain.Hold, drain.Cordon} {
			stage(t, draintest.Options{}, nil, func(s *stageTest) {
				s.stuck()
				asked := ""
				always := func(r *drain.Request) {
					r.Mode, r.HoldUntil = mode, time.Now().Add(time.Hour)
					r.TakeOver = func(run string) bool { asked = run; return true }
				}
				first, second := s.newRunner("first", always), s.newRunner("second", always)
				if same {
					sameMaintenance(first)
					sameMaintenance(second)
				}
				began := s.passOf(first).Started
				s.sleep(time.Minute)
				st := s.passOf(second)
				if st.Phase == drain.Failed || asked != "first" || mode != drain.Cordon && same != st.Started.Equal(began) {
					t.Errorf("%s: got %s after the question about %q, want the node taken over, with the clock of %s: %v", mode,
						stageLine(st), asked, began, same)
				}
				s.sleep(time.Second)
				s.c.ClearLog()
				for range 10 {
					s.wants(s.passOf(first), drain.Failed, drain.Superseded, drain.OutcomeFailed)
					if st := s.passOf(second); st.Phase == drain.Failed {
						t.Fatalf("%s: the second run: got %s, want it to go on", mode, stageLine(st))
					}
					s.sleep(10 * time.Second)
				}
				first.r.Mode = drain.Release
				s.passOf(first)
				if n := len(s.writes()); n != 0 || !s.c.LiveNode("n1").Spec.Unschedulable {
					t.Errorf("%s: got the writes %v, want none, and the node held by the second run", mode, s.writes())
				}
				second.r.Mode = drain.Release
				s.d = second.d
				s.phase(second.r, time.Minute, drain.Released)
				s.sleep(time.Second)
				s.clean("n1")
			})
		}
	}
}

// A run that has come to its end needs no taking over: another one drains the node anew, and releases it.
func TestNextRunNeedsNoTakingOver(t *testing.T) {
	for _, same := range []bool{false, true} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.web("web", 2, "n1")
			first, second := s.newRunner("first"), s.newRunner("second")
			if same {
				sameMaintenance(first)
				sameMaintenance(second)
			}
			s.d = first.d
			s.phase(first.r, time.Minute, drain.Drained)
			s.d = second.d
			s.phase(second.r, time.Minute, drain.Drained)
			second.r.Mode = drain.Release
			s.phase(second.r, time.Minute, drain.Released)
			s.sleep(time.Second)
			s.clean("n1")
		})
	}
}

// What a run holds is released by whom it may concern: a request without a run. The run then ends, and does not cordon
// the node again.
func TestReleaseByAnotherProcessEndsTheRun(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		run := s.newRunner("first")
		s.passOf(run)
		s.sleep(time.Second)
		s.restart()
		s.phase(s.request("n1", func(r *drain.Request) { r.Mode = drain.Release }), time.Minute, drain.Released)
		s.sleep(time.Second)
		s.c.ClearLog()
		for range 3 {
			s.wants(s.passOf(run), drain.Failed, drain.Superseded, drain.OutcomeFailed)
			s.sleep(time.Minute)
		}
		if calls := s.writes(); len(calls) != 0 {
			t.Errorf("got the writes %v, want none", calls)
		}
		s.clean("n1")
	})
}

// A holder without runs, such as a controller, goes on where a process before it ended, and where a run did; so does
// a run after it.
func TestHolderWithoutRunsIsNotRefused(t *testing.T) {
	for _, runs := range [][2]string{{"", ""}, {"first", ""}, {"", "second"}} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.stuck()
			first, second := s.newRunner(runs[0]), s.newRunner(runs[1])
			sameMaintenance(first)
			sameMaintenance(second)
			began := s.passOf(first).Started
			s.sleep(time.Minute)
			if st := s.passOf(second); st.Phase != drain.Draining || !st.Started.Equal(began) {
				t.Errorf("%q: got %s, want the drain of %s to go on", runs, stageLine(st), began)
			}
		})
	}
}

// Two processes of one holder without runs that want opposite things, and a client that takes the mark off again and
// again, see few writes: at once, and then at growing intervals.
func TestOppositeWishesWriteLittle(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		wants, gives := s.newRunner(""), s.newRunner("")
		gives.r.Mode = drain.Release
		s.fewWrites(func() { s.passOf(wants); s.sleep(time.Second); s.passOf(gives); s.sleep(time.Second) }, 2)
	})
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.stuck()
		run := s.newRunner("")
		s.fewWrites(func() { s.passOf(run); s.sleep(time.Second); s.unmark("n1") }, 1)
	})
}

// fewWrites repeats what two seconds take for ten minutes, and fails the test after more than ten rounds of writes.
func (s *stageTest) fewWrites(round func(), each int) {
	s.Helper()
	for range 300 {
		round()
	}
	if n := len(s.writes()); n > 10*each {
		s.Errorf("got %d writes in ten minutes, want at most %d", n, 10*each)
	}
}

// A name of a run that a mark cannot keep is refused.
func TestRunThatAMarkCannotKeepIsRefused(t *testing.T) {
	r := drain.Request{Node: "n1", Holder: "h", Run: "a\nb", Mode: drain.Cordon}
	if err := r.Validate(); err == nil || !strings.Contains(err.Error(), "run has an unprintable character") {
		t.Errorf("got %v, want an error that names the run", err)
	}
}
