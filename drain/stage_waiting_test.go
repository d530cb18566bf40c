// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// reconcileSet reconciles a set as a controller does, without Run, until it is done.
func (s *stageTest) reconcileSet(set drain.Set) drain.SetStatus {
	s.Helper()
	for end := time.Now().Add(time.Hour); time.Now().Before(end); {
		st, after, err := s.d.ReconcileSet(s.Context(), set)
		if err != nil {
			s.Fatalf("ReconcileSet: got %v, want a pass", err)
		}
		if set.Last = &st; st.Done {
			return st
		}
		if after == 0 || after > 10*time.Second {
			after = 10 * time.Second
		}
		s.sleep(after)
	}
	s.Fatalf("got %+v after an hour, want the set done", set.Last)
	return drain.SetStatus{}
}

// R-DR-20: a name that has no Node stops a set before the first pod leaves, as an error of typing should.
func TestWrongNameStopsTheSetBeforeItsNextNode(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Minute}, nil, func(s *stageTest) {
		s.web("web", 3, "n1", "n2")
		s.sleep(time.Second)
		st, err := s.d.Run(s.Context(), drain.Set{Request: s.request(""), Groups: [][]string{{"n1", "n2", "n9"}}}, nil)
		if err != nil || !st.Done || st.Reason != drain.NodeNotFound || !strings.Contains(st.Message, `"n9"`) {
			t.Errorf("got %+v, %v, want it stopped for n9", st, err)
		}
		if n := len(s.evictions()); n != 0 {
			t.Errorf("got %d evictions, want none before the set stops", n)
		}
		for _, n := range []string{"n1", "n2"} {
			s.clean(n)
		}
	})
}

// R-DR-20: a set that stops opens the nodes whose turn never came, also for a caller of ReconcileSet, and is not done
// before. What the holder has cordoned for the same maintenance by itself stays.
func TestStoppedSetOpensWhatItHasClosed(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.finishing()
		s.phase(s.request("n3", func(r *drain.Request) { r.Mode = drain.Cordon }), time.Minute, drain.Cordoned)
		set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1", "n2", "n3"}}, NodeTimeout: time.Minute}
		st := s.reconcileSet(set)
		s.wants(st.Nodes[1], drain.Pending, "SetStopped", "")
		s.clean("n2")
		if !s.c.LiveNode("n3").Spec.Unschedulable {
			t.Error("n3: got it schedulable, want the cordon that was asked for by itself as it is")
		}
		if n := len(s.c.Log(draintest.PatchNode)); n > 6 {
			t.Errorf("got %d writes, want n1 begun, n2 closed and opened, n3 cordoned", n)
		}
	})
}

// R-DR-20: a cordon that the holder asks for while the node waits is its own from then on.
func TestCordonOfANodeThatWaitsOutlivesTheSet(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.finishing()
		set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1", "n2"}}, NodeTimeout: time.Minute}
		if _, _, err := s.d.ReconcileSet(s.Context(), set); err != nil || !s.c.LiveNode("n2").Spec.Unschedulable {
			t.Fatalf("got %v, n2 cordoned: %t, want it closed", err, s.c.LiveNode("n2").Spec.Unschedulable)
		}
		s.phase(s.request("n2", func(r *drain.Request) { r.Mode = drain.Cordon }), time.Minute, drain.Cordoned)
		s.reconcileSet(set)
		if !s.c.LiveNode("n2").Spec.Unschedulable {
			t.Error("n2: got it schedulable, want the cordon that was asked for as it is")
		}
	})
}

// R-DR-20: a process that is to leave waiting nodes open opens those that one before it has closed.
func TestLeaveOpenOpensWhatAnEarlierProcessClosed(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.finishing()
		set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1", "n2", "n3"}}}
		for _, open := range []bool{false, true, false, true} {
			s.restart()
			set.LeaveOpen, set.Last = open, nil
			if _, _, err := s.d.ReconcileSet(s.Context(), set); err != nil {
				t.Fatalf("left open %t: got %v, want a pass", open, err)
			}
			s.sleep(time.Second)
			if got := !s.c.LiveNode("n3").Spec.Unschedulable; got != open {
				t.Errorf("left open %t: got n3 schedulable: %t", open, got)
			}
		}
	})
}

// R-DR-20, R-DR-15: a node that can't be closed while it waits holds up none that drains, is asked about seldom, and
// the status says why it is open.
func TestNodeThatCannotBeClosedHoldsUpNoOther(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		s.c.AddNode("spare")
		s.web("web", 20, "n1")
		s.sleep(time.Second)
		refused := draintest.Always(draintest.PatchNode, draintest.Forbidden())
		refused.Object = "n2"
		s.c.Faults(refused)
		began, drained, told := time.Now(), time.Duration(0), ""
		set := drain.Set{Request: s.request("", func(r *drain.Request) { r.Deadline = time.Now().Add(time.Hour) }),
			Groups: [][]string{{"n1", "n2"}}}
		_, err := s.d.Run(s.Context(), set, func(st drain.SetStatus) {
			if st.Nodes[1].Reason == "WaitingForSlot" && strings.Contains(st.Nodes[1].Message, "forbidden") {
				told = st.Nodes[1].Message
			}
			if st.Nodes[0].Phase == drain.Drained && drained == 0 {
				drained = time.Since(began)
				s.c.ClearFaults()
			}
		})
		asked := 0
		for _, c := range s.c.Log(draintest.PatchNode) {
			if c.Object == "n2" && c.Err != nil {
				asked++
			}
		}
		if err != nil || drained > 30*time.Second || asked > 8 || told == "" {
			t.Errorf("got %v, n1 drained in %s, n2 asked %d times, told %q, want n1 drained at once, n2 asked seldom, and why",
				err, drained, asked, told)
		}
	})
}

// R-DR-20: a Node that is deleted while it waits is done, also where it was left open; one that is made anew under the
// name is drained.
func TestNodeThatVanishesWhileItWaits(t *testing.T) {
	for _, open := range []bool{false, true} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.finishing()
			s.web("api", 2, "n3")
			set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1", "n2", "n3"}}, LeaveOpen: open}
			set.NodeTimeout, set.SkipFailed = 10*time.Minute, true
			time.AfterFunc(time.Minute, func() { s.c.DeleteNode("n2") })
			if open {
				time.AfterFunc(2*time.Minute, func() { s.c.DeleteNode("n3") })
				time.AfterFunc(3*time.Minute, func() { s.c.AddNode("n3") })
			}
			st, err := s.d.Run(s.Context(), set, nil)
			if err != nil || !st.Done {
				t.Fatalf("left open %t: got %+v, %v, want it done", open, st, err)
			}
			s.wants(st.Nodes[1], drain.Drained, drain.NodeNotFound, drain.OutcomeDrained)
			s.wants(st.Nodes[2], drain.Drained, "", drain.OutcomeDrained)
		})
	}
}

// R-DR-20, R-DR-16: a node that was closed and does not begin at its turn, since the deadline is over, is opened; the
// set is done then, and not before.
func TestNodeWhoseTurnComesTooLateIsOpened(t *testing.T) {
	for _, skip := range []bool{false, true} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.finishing()
			set := drain.Set{Groups: [][]string{{"n1", "n2", "n3"}}, SkipFailed: skip,
				Request: s.request("", func(r *drain.Request) { r.Deadline = time.Now().Add(10 * time.Minute) })}
			st, err := s.d.Run(s.Context(), set, nil)
			if err != nil || !st.Done {
				t.Fatalf("skip %t: got %+v, %v, want it done", skip, st, err)
			}
			s.clean("n2")
			s.clean("n3")
		})
	}
}

// R-DR-20: a node that was closed and whose own turn fails is opened, and the set is done at once.
func TestClosedNodeWhoseTurnFailsIsOpened(t *testing.T) {
	t.Run("a preflight", func(t *testing.T) {
		stage(t, draintest.Options{Termination: time.Minute}, nil, func(s *stageTest) {
			s.c.AddNode("spare")
			s.web("web", 1, "n1")
			s.sleep(0)
			r := s.request("", func(r *drain.Request) { r.Policy.Removal = &drain.Removal{} })
			time.AfterFunc(10*time.Second, func() {
				s.c.AddPod("default", "data", "n2", func(p *corev1.Pod) {
					dir := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
					p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: dir}}
				})
			})
			s.stopsWithin(drain.Set{Request: r, Groups: [][]string{{"n1", "n2"}}}, 10*time.Minute)
			s.clean("n2")
		})
	})
	t.Run("a window", func(t *testing.T) {
		stage(t, draintest.Options{Termination: time.Minute}, nil, func(s *stageTest) {
			s.c.AddNode("spare")
			s.web("web", 1, "n1")
			s.sleep(0)
			began := time.Now()
			r := s.request("", func(r *drain.Request) {
				r.Policy.Windows = []drain.Window{{From: began, Until: began.Add(30 * time.Second)}}
				r.Deadline = began.Add(10 * time.Minute)
			})
			s.stopsWithin(drain.Set{Request: r, Groups: [][]string{{"n1", "n2"}}}, 11*time.Minute)
			s.clean("n2")
		})
	})
}

// stopsWithin runs a set that has to be done in time.
func (s *stageTest) stopsWithin(set drain.Set, most time.Duration) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 24*time.Hour)
	defer cancel()
	began := time.Now()
	if st, err := s.d.Run(ctx, set, nil); err != nil || !st.Done || time.Since(began) > most {
		s.Errorf("got %+v, %v after %s, want it done within %s", st, err, time.Since(began), most)
	}
}

// R-DR-20: a Node that is made anew while it waits is the one that is drained, also where the one before was closed.
func TestNodeMadeAnewWhileItWaitsIsDrained(t *testing.T) {
	for _, open := range []bool{false, true} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.finishing()
			set := drain.Set{Request: s.request(""), Groups: [][]string{{"n1", "n2"}}, LeaveOpen: open,
				NodeTimeout: 5 * time.Minute, SkipFailed: true}
			time.AfterFunc(time.Minute, func() { s.c.DeleteNode("n2"); s.c.AddNode("n2") })
			st, err := s.d.Run(s.Context(), set, nil)
			if err != nil || !st.Done {
				t.Fatalf("left open %t: got %+v, %v, want it done", open, st, err)
			}
			s.wants(st.Nodes[1], drain.Drained, "", drain.OutcomeDrained)
		})
	}
}

// R-DR-09, R-DR-17: a run that is cancelled opens no node that another run has drained since for its own maintenance.
func TestCancelLeavesWhatAnotherRunHasDrained(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 2, "n1")
		s.c.AddPod("default", "job", "n2", func(p *corev1.Pod) {
			p.Labels = map[string]string{"drain.belay.dev/behavior": "WaitCompleted"}
		})
		s.sleep(0)
		a, b := s.newRunner("A"), s.newRunner("B")
		ctx, cancel := context.WithCancel(s.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = a.d.Run(ctx, drain.Set{Request: a.r, Groups: [][]string{{"n1", "n2"}}}, nil)
		}()
		s.sleep(5 * time.Minute)
		s.d = b.d
		s.phase(b.r, time.Minute, drain.Drained)
		cancel()
		<-done
		s.sleep(time.Second)
		if !s.c.LiveNode("n1").Spec.Unschedulable {
			t.Error("n1: got it schedulable, want it held by the run that has drained it since")
		}
	})
}

// R-DR-09: a run that takes over from one that has died opens what that one has closed, and gives it back.
func TestRunAfterACrashOpensWhatWasClosed(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.finishing()
		set := drain.Set{Request: s.request("", func(r *drain.Request) { r.Run = "x" }),
			Groups: [][]string{{"n1", "n2", "n3"}}}
		if _, _, err := s.d.ReconcileSet(s.Context(), set); err != nil || !s.c.LiveNode("n3").Spec.Unschedulable {
			t.Fatalf("got %v, n3 cordoned: %t, want it closed", err, s.c.LiveNode("n3").Spec.Unschedulable)
		}
		s.restart()
		set.Request.Run, set.Request.TakeOver, set.LeaveOpen = "y", func(string) bool { return true }, true
		ctx, cancel := context.WithTimeout(s.Context(), 5*time.Minute)
		defer cancel()
		_, _ = s.d.Run(ctx, set, nil)
		s.sleep(time.Second)
		for _, n := range []string{"n1", "n2", "n3"} {
			s.clean(n)
		}
	})
}

// R-DR-09: a run whose node another run has had does not come back when that is over, on a person's cordon or without
// the mark of the other.
func TestSupersededRunDoesNotComeBack(t *testing.T) {
	for _, released := range []bool{false, true} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.stuck()
			a := s.newRunner("A")
			b := s.newRunner("B", func(r *drain.Request) { r.TakeOver = func(string) bool { return true } })
			s.passOf(a)
			s.sleep(time.Second)
			s.passOf(b)
			s.sleep(time.Second)
			s.wants(s.passOf(a), drain.Failed, drain.Superseded, drain.OutcomeFailed)
			if released {
				s.setCordon(false)
				s.sleep(time.Second)
				s.setCordon(true)
				s.sleep(time.Second)
				b.r.Mode = drain.Release
				s.passOf(b)
			} else {
				s.c.UpdateNode("n1", func(n *corev1.Node) { delete(n.Annotations, drain.MarkAnnotation) })
			}
			s.sleep(time.Second)
			s.wants(s.passOf(a), drain.Failed, drain.Superseded, drain.OutcomeFailed)
		})
	}
}
