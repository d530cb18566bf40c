// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"maps"
	"testing"
	"time"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// R-DR-11: a process that does a holder's work no longer tells of none of its drains, and goes on telling of those of others; when it does the work
// again, it tells again.
func TestForgetTakesDrainsOutOfTheSum(t *testing.T) {
	m := &stageSeries{}
	stage(t, draintest.Options{}, func(o *drain.Options) { o.Metrics = m.hooks() }, func(s *stageTest) {
		s.c.AddPod("default", "alone", "n1")
		s.c.AddPod("default", "lonely", "n2")
		mine := s.request("n1")
		theirs := s.request("n2", func(r *drain.Request) { r.Holder = "somebody else" })
		s.sleep(0)
		s.phase(mine, time.Minute, drain.Draining)
		s.phase(theirs, time.Minute, drain.Draining)
		wants := func(when string, n int) {
			t.Helper()
			if want := map[drain.Phase]int{drain.Draining: n}; !maps.Equal(m.phases, want) {
				t.Errorf("%s: got %v, want %v", when, m.phases, want)
			}
		}
		wants("both are told of", 2)
		for range 2 {
			if err := s.d.Forget(s.Context(), mine.Holder); err != nil {
				t.Fatalf("Forget: got %v, want no error", err)
			}
			wants("one holder is forgotten", 1)
		}
		s.phase(mine, time.Minute, drain.Draining)
		wants("it is at work again", 2)
		mine.Maintenance = "the next one"
		s.phase(mine, time.Minute, drain.Draining)
		wants("it has another maintenance", 2)
	})
}

// A pass that is under way is waited for, and no longer than was asked for.
func TestForgetWaitsForThePass(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		s.c.Faults(draintest.On(draintest.Evict, 1, draintest.TimeoutBefore(10*time.Second)))
		s.sleep(0)
		began, done := time.Now(), make(chan struct{})
		go func() {
			defer close(done)
			s.pass(s.request("n1"))
		}()
		s.sleep(time.Second)
		if err := s.d.Forget(s.Context(), s.request("n1").Holder); err != nil {
			t.Fatalf("Forget: got %v, want no error", err)
		}
		if waited := time.Since(began); waited < 10*time.Second {
			t.Errorf("Forget has returned after %s, while the pass was under way", waited)
		}
		<-done
	})
}
