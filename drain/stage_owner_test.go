// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// setCordon cordons or uncordons n1 as a person does with kubectl. The mark stays.
func (s *stageTest) setCordon(unschedulable bool) {
	s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = unschedulable })
}

// replaceCordon opens n1 and cordons it again, with a pass of the request after each where it watches.
func (s *stageTest) replaceCordon(watches bool, r drain.Request) {
	for _, unschedulable := range []bool{false, true} {
		s.setCordon(unschedulable)
		if watches {
			s.sleep(time.Second)
			s.pass(r)
		}
	}
	s.sleep(time.Second)
}

// wantReleased releases n1, and fails the test unless nothing but that cordon is left.
func (s *stageTest) wantReleased(cordoned bool, requests ...drain.Request) {
	s.Helper()
	for _, r := range requests {
		r.Mode = drain.Release
		s.phase(r, time.Minute, drain.Released)
	}
	s.sleep(time.Second)
	n := s.c.LiveNode("n1")
	if n.Spec.Unschedulable != cordoned || n.Annotations[drain.MarkAnnotation] != "" {
		s.Errorf("after the release: unschedulable %v, annotations %v, want unschedulable %v and no mark",
			n.Spec.Unschedulable, n.Annotations, cordoned)
	}
}

// ownerCases runs a test with and without passes between a person's writes, and with and without a new process after
// them.
func ownerCases(t *testing.T, test func(s *stageTest, watches, restarts bool)) {
	for _, watches := range []bool{false, true} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("watches=%v,restarts=%v", watches, restarts), func(t *testing.T) {
				stage(t, draintest.Options{}, nil, func(s *stageTest) {
					s.stuck()
					test(s, watches, restarts)
				})
			})
		}
	}
}

// R-DR-09: a person's cordon, set after another client has opened the node, stays: the mark speaks of an older one.
func TestCordonOfAPersonStays(t *testing.T) {
	ownerCases(t, func(s *stageTest, watches, restarts bool) {
		r := s.request("n1")
		s.pass(r)
		s.sleep(time.Second)
		s.replaceCordon(watches, r)
		if restarts {
			s.restart()
		}
		s.pass(r)
		s.wantReleased(true, r)
	})
	ownerCases(t, func(s *stageTest, watches, restarts bool) { // and where another drain of the holder begins after it
		r, next := s.request("n1"), s.request("n1", func(r *drain.Request) { r.Maintenance = "m2" })
		s.pass(r)
		s.sleep(time.Second)
		s.replaceCordon(watches, r)
		if restarts {
			s.restart()
		}
		s.pass(next)
		s.sleep(time.Second)
		s.wantReleased(true, next)
	})
}

// The same with two holders, the second of which comes before the person or after.
func TestCordonOfAPersonStaysAfterTwoHolders(t *testing.T) {
	for _, late := range []bool{false, true} {
		ownerCases(t, func(s *stageTest, watches, restarts bool) {
			a, b := s.request("n1"), s.request("n1", func(r *drain.Request) { r.Holder, r.Mode = "other", drain.Cordon })
			s.pass(a)
			if !late {
				s.pass(b)
			}
			s.sleep(time.Second)
			s.replaceCordon(watches, a)
			if restarts {
				s.restart()
			}
			s.pass(b)
			s.sleep(time.Second)
			s.wantReleased(true, a, b)
		})
	}
}

// The cordon of a holder goes, whichever of several holders has written the mark last, and after which process.
func TestCordonOfAHolderGoesWithTheLast(t *testing.T) {
	ownerCases(t, func(s *stageTest, _, restarts bool) {
		a, b := s.request("n1"), s.request("n1", func(r *drain.Request) { r.Holder, r.Mode = "other", drain.Cordon })
		s.pass(a)
		s.sleep(time.Second)
		if restarts {
			s.restart()
		}
		s.pass(b)
		s.sleep(time.Second)
		s.wantReleased(false, a, b)
	})
}

// R-DR-09: a drain that finds the node open leaves it open, also where an old mark says that it was once found
// cordoned.
func TestNodeThatAPersonOpenedIsGivenBackOpen(t *testing.T) {
	ownerCases(t, func(s *stageTest, watches, restarts bool) {
		r, next := s.request("n1"), s.request("n1", func(r *drain.Request) { r.Maintenance = "m2" })
		s.setCordon(true)
		s.sleep(time.Second)
		s.pass(r)
		s.setCordon(false)
		s.sleep(time.Second)
		if watches {
			s.pass(r)
		}
		if restarts {
			s.restart()
		}
		s.pass(next)
		s.sleep(time.Second)
		if !s.c.LiveNode("n1").Spec.Unschedulable {
			t.Fatal("got the node schedulable, want the next drain to have cordoned it")
		}
		s.wantReleased(false, next)
	})
}

// A mark that is removed is written again with what it said, but for the cordon of a person.
func TestMarkIsNotWrittenAgainForTheCordonOfAPerson(t *testing.T) {
	for _, between := range []bool{false, true} {
		stage(t, draintest.Options{}, nil, func(s *stageTest) {
			s.stuck()
			r := s.request("n1")
			s.pass(r)
			s.sleep(time.Second)
			s.pass(r)
			s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable, n.Annotations = false, nil })
			s.setCordon(true)
			s.sleep(time.Second)
			if between {
				s.pass(r)
				s.sleep(time.Second)
			}
			s.wantReleased(true, r)
		})
	}
}

// ownerless is a cache that shows no managedFields, as many embedders strip them.
type ownerless struct{ *draintest.Cluster }

// Node returns the node without its managedFields.
func (c ownerless) Node(name string) *corev1.Node {
	node := c.Cluster.Node(name)
	if node != nil {
		node = node.DeepCopy()
		node.ManagedFields = nil
	}
	return node
}

// Where the cache shows no managedFields, the API server is asked whose the cordon is: once for a release.
func TestServerIsAskedWhoseTheCordonIs(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		strip := func(o *drain.Options) { o.Cache = ownerless{o.Cache.(*draintest.Cluster)} }
		stage(t, draintest.Options{}, strip, func(s *stageTest) {
			s.stuck()
			r := s.request("n1")
			s.pass(r)
			s.sleep(time.Second)
			if replaced {
				s.replaceCordon(false, r)
			}
			s.restart()
			s.pass(r)
			s.c.ClearLog()
			s.wantReleased(replaced, r)
			if reads := s.c.Log(draintest.GetNode); len(reads) != 1 {
				t.Errorf("got the reads %v, want one", reads)
			}
		})
	}
}

// R-DR-17: whichever write of a drain, of the drain after a person's cordon and of the release is lost, before or after
// the server has carried it out, and which process goes on: the person's cordon stays, and no other does.
func TestLostWritesKeepTheCordonOfAPerson(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for _, lost := range []draintest.Fault{
			draintest.On(draintest.PatchNode, n, draintest.Unavailable()),
			draintest.On(draintest.PatchNode, n, draintest.TimeoutAfter(time.Second)),
		} {
			for _, person := range []bool{false, true} {
				stage(t, draintest.Options{}, nil, func(s *stageTest) {
					s.stuck()
					s.c.Faults(lost)
					r, next := s.request("n1"), s.request("n1", func(r *drain.Request) { r.Maintenance = "m2" })
					s.retryUntil(r, func(st drain.Status) bool { return st.Phase == drain.Draining })
					if person {
						s.replaceCordon(false, r)
					}
					s.restart()
					s.retryUntil(next, func(st drain.Status) bool { return st.Phase == drain.Draining })
					s.restart()
					next.Mode = drain.Release
					s.retryUntil(next, func(st drain.Status) bool { return st.Phase == drain.Released })
					s.wantReleased(person)
				})
			}
		}
	}
}

// retryUntil reconciles until the status is as wanted, with a new process after each pass that fails.
func (s *stageTest) retryUntil(r drain.Request, done func(drain.Status) bool) {
	s.Helper()
	for range 20 {
		st, _, err := s.d.ReconcileRequest(context.WithoutCancel(s.Context()), r)
		if err == nil && done(st) {
			return
		}
		if err != nil {
			s.restart()
		}
		s.sleep(time.Second)
	}
	s.Fatalf("request %+v: not done after 20 passes", r)
}
