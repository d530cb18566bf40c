// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/draintest"
)

// stageSeries are the time series that an adapter makes of the hooks: nodes by phase, blocked pods by reason, answers by code, the
// oldest blocked pod.
type stageSeries struct {
	mu      sync.Mutex
	phases  map[drain.Phase]int
	blocked map[drain.Reason]int
	oldest  time.Time
	answers map[string]int
	passes  int
}

// hooks are for one process: the series of the one before are gone.
func (m *stageSeries) hooks() drain.Metrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.phases, m.answers = map[drain.Phase]int{}, map[string]int{}
	return drain.Metrics{
		Phase: func(from, to drain.Phase) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.phases[from]--
			m.phases[to]++
			maps.DeleteFunc(m.phases, func(p drain.Phase, n int) bool { return p == "" || n == 0 })
		},
		Blocked: func(_ string, byReason map[drain.Reason]int, oldest time.Time) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.blocked, m.oldest = byReason, oldest
		},
		Eviction: func(v drain.Verdict, code int, _ time.Duration) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.answers[fmt.Sprintf("%s %d", v, code)]++
		},
		Pass: func(time.Duration) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.passes++
		},
	}
}

// count returns the number of passes since it was last asked.
func (m *stageSeries) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.passes
	m.passes = 0
	return n
}

// R-DR-11: the series tell a drain that is stuck because of a few pods, for how long, and what the server said.
func TestMetricsTellWhatIsStuck(t *testing.T) {
	m := &stageSeries{}
	stage(t, draintest.Options{}, func(o *drain.Options) { o.Metrics = m.hooks() }, func(s *stageTest) {
		s.web("web", 2, "n1")
		s.web("api", 2, "n1")
		s.c.AddPod("default", "alone", "n1")
		s.c.AddBudget(draintest.MinAvailable("default", "api", "100%", map[string]string{"app": "api"}))
		s.c.Faults(draintest.On(draintest.Evict, 1, draintest.InternalError()))
		s.sleep(0)
		began := time.Now()
		r := s.request("n1")
		st := s.until(r, time.Hour, "a blocked drain", func(st drain.Status) bool { return st.Outcome == drain.OutcomeBlocked })
		s.sleep(time.Hour)
		s.pass(r)
		if want := map[drain.Phase]int{drain.Draining: 1}; !maps.Equal(m.phases, want) {
			t.Errorf("nodes by phase: got %v, want %v", m.phases, want)
		}
		if want := map[drain.Reason]int{drain.BudgetNeverAllows: 2, drain.Unmanaged: 1}; !maps.Equal(m.blocked, want) {
			t.Errorf("blocked by reason: got %v, want %v", m.blocked, want)
		}
		if n := m.answers["BudgetExhausted 429"]; n < 2 || n > 2*4 { // its budget allows none: each of two pods is asked now and then
			t.Errorf("refused evictions: got %d, want some for each of two pods", n)
		}
		delete(m.answers, "BudgetExhausted 429")
		if want := map[string]int{"Accepted 201": 2, "Unknown 500": 1}; !maps.Equal(m.answers, want) {
			t.Errorf("answers by code: got %v, want %v", m.answers, want)
		}
		if !m.oldest.Equal(began) || !st.Blockers[0].Since.Equal(began) {
			t.Errorf("oldest: got %s, want %s", m.oldest, began)
		}
		if m.passes == 0 {
			t.Error("passes: got 0, want them counted")
		}
		s.c.DeleteBudget("default", "api")
		s.c.Finish("default", "alone")
		s.phase(r, time.Minute, drain.Drained)
		if want := map[drain.Phase]int{drain.Drained: 1}; !maps.Equal(m.phases, want) || len(m.blocked) != 0 || !m.oldest.IsZero() {
			t.Errorf("drained: got %v, %v, %s, want 1 drained and nothing blocked", m.phases, m.blocked, m.oldest)
		}
	})
}

// R-DR-11: each answer is counted by its verdict and code.
func TestMetricsCountEachAnswer(t *testing.T) {
	for want, fault := range map[string]draintest.Fault{
		"Overloaded 429":           draintest.Overloaded(time.Second),
		"AdmissionDenied 400":      draintest.WebhookDenied(http.StatusBadRequest),
		"Forbidden 403":            draintest.Forbidden(),
		"NamespaceTerminating 403": draintest.NamespaceGoing(),
		"Unknown 0":                draintest.TimeoutBefore(time.Second),
		"Replaced 409":             draintest.Conflict(),
		"Gone 404":                 draintest.Gone(),
	} {
		m := &stageSeries{}
		stage(t, draintest.Options{}, func(o *drain.Options) { o.Metrics = m.hooks() }, func(s *stageTest) {
			s.web("web", 1, "n1")
			s.c.Faults(draintest.On(draintest.Evict, 1, fault))
			s.phase(s.request("n1"), time.Minute, drain.Drained)
			if all := map[string]int{want: 1, "Accepted 201": 1}; !maps.Equal(m.answers, all) {
				t.Errorf("got %v, want %v", m.answers, all)
			}
		})
	}
}

// Events are told on edges: as many for a drain that is blocked for a day as for one of a minute.
func TestEventsOnlyOnEdges(t *testing.T) {
	m := &stageSeries{}
	stage(t, draintest.Options{Termination: 5 * time.Second}, func(o *drain.Options) { o.Metrics = m.hooks() }, func(s *stageTest) {
		s.web("web", 2, "n1")
		s.c.AddBudget(draintest.MinAvailable("default", "web", "2", map[string]string{"app": "web"}))
		s.sleep(0)
		r := s.request("n1")
		end := time.Now().Add(24 * time.Hour)
		s.until(r, 25*time.Hour, "time to pass", func(drain.Status) bool { return time.Now().After(end) })
		s.c.DeleteBudget("default", "web")
		st := s.phase(r, time.Minute, drain.Drained)
		s.pass(r)
		s.restart()
		r.Last = &st
		s.pass(r)
		if want := map[drain.Phase]int{drain.Drained: 1}; !maps.Equal(m.phases, want) {
			t.Errorf("nodes by phase after a restart: got %v, want %v", m.phases, want)
		}
		r.Mode = drain.Release
		s.phase(r, time.Minute, drain.Released)
		r.Last = nil
		s.pass(r)
		s.pass(r)
		want := []string{"Warning Draining", "Normal Drained", "Normal Released"} // the day is longer than the settle time
		if got := s.events.all(); !slices.Equal(got, want) {
			t.Errorf("events: got %q, want %q", got, want)
		}
		if len(m.phases) != 0 {
			t.Errorf("nodes by phase when all is over: got %v, want none", m.phases)
		}
	})
}

// An event of a drain that many pods hold up has a note that the API server takes.
func TestEventsFitTheAPIServer(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Minute}, nil, func(s *stageTest) {
		for _, app := range []string{"blocked", "leaving"} {
			s.web(app+"-"+strings.Repeat("é", 100), 3, "n1")
		}
		app := map[string]string{"app": "blocked-" + strings.Repeat("é", 100)}
		s.c.AddBudget(draintest.MinAvailable("default", "blocked", "3", app))
		s.sleep(0)
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.Escalation = []drain.Escalation{{After: time.Hour, Step: drain.StepDelete}}
		})
		st := s.phase(r, time.Minute, drain.Draining)
		note := s.events.list[0][strings.Index(s.events.list[0], ": ")+2:]
		if len(st.Message) <= 1024 || len(note) > 1024 || !strings.HasPrefix(st.Message, strings.TrimSuffix(note, "…")) {
			t.Errorf("the message has %d bytes, the note %d: %q; want more than 1,024, and the beginning of it",
				len(st.Message), len(note), note)
		}
	})
}

// What is forced and what is refused is told as a warning.
func TestWarningsOfEscalationAndRecordon(t *testing.T) {
	stage(t, draintest.Options{Termination: time.Second}, nil, func(s *stageTest) {
		s.web("web", 1, "n1")
		s.c.AddBudget(draintest.MinAvailable("default", "web", "1", map[string]string{"app": "web"}))
		s.sleep(0)
		r := s.request("n1", func(r *drain.Request) {
			r.Policy.Escalation = []drain.Escalation{{After: time.Minute, Step: drain.StepDelete}}
			r.Policy.Uncordoned = drain.Recordon
		})
		s.pass(r)
		s.c.UpdateNode("n1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
		s.phase(r, 5*time.Minute, drain.Drained)
		got := s.events.all()
		for _, want := range []string{"Warning Recordoned", "Warning Forced"} {
			if n := len(slices.DeleteFunc(slices.Clone(got), func(e string) bool { return e != want })); n != 1 {
				t.Errorf("events %q: got %d of %q, want 1", got, n, want)
			}
		}
	})
}

// The conditions of KEP-5683 have its names, tell the drain as it goes, cost two writes more, and are gone after the release.
func TestNodeConditions(t *testing.T) {
	for _, lag := range []time.Duration{0, 100 * time.Millisecond} {
		o := draintest.Options{Termination: 5 * time.Second, ControllerLag: lag, CacheLag: lag}
		stage(t, o, func(o *drain.Options) { o.NodeConditions = true }, func(s *stageTest) {
			s.web("web", 2, "n1")
			s.sleep(time.Second)
			r := s.request("n1")
			s.phase(r, time.Minute, drain.Draining)
			s.until(r, time.Minute, "conditions", func(drain.Status) bool { return len(s.c.LiveNode("n1").Status.Conditions) == 5 })
			s.conditions("DrainInProgress=True Drained=False MaintenancePlanned=False MaintenanceInProgress=True")
			s.phase(r, time.Minute, drain.Drained)
			s.conditions("DrainInProgress=False Drained=True MaintenancePlanned=False MaintenanceInProgress=True")
			r.Mode = drain.Release
			s.phase(r, time.Minute, drain.Released)
			s.sleep(time.Second)
			s.clean("n1")
			writes := 0
			for _, c := range s.c.Log(draintest.PatchNode) {
				if c.Wrote {
					writes++
				}
			}
			if writes != 5 {
				t.Errorf("writes to the node: got %d, want 3 and 2 for the conditions: %v", writes, s.c.Log(draintest.PatchNode))
			}
		})
	}
}

func (s *stageTest) conditions(want string) {
	s.Helper()
	got := ""
	for _, name := range []string{"DrainInProgress", "Drained", "MaintenancePlanned", "MaintenanceInProgress"} {
		for _, c := range s.c.LiveNode("n1").Status.Conditions {
			if string(c.Type) == name {
				got += fmt.Sprintf("%s=%s ", c.Type, c.Status)
			}
		}
	}
	if got != want+" " {
		s.Errorf("conditions: got %q, want %q", got, want)
	}
}

// What only memory knew comes back over a restart with the caller's last status: who was evicted, and since when a pod is blocked.
func TestLastBringsBackWhatMemoryKnew(t *testing.T) {
	stage(t, draintest.Options{}, nil, func(s *stageTest) {
		s.web("web", 2, "n1")
		s.c.AddPod("default", "alone", "n1")
		r := s.request("n1")
		began := time.Now()
		st := s.until(r, time.Minute, "a blocked drain", func(st drain.Status) bool { return st.Outcome == drain.OutcomeBlocked })
		s.sleep(time.Hour)
		s.restart()
		r.Last = &st
		st = s.pass(r)
		if b := s.blocker(st, "alone"); !b.Since.Equal(began) || len(st.Evicted) != 2 || st.Counts.Evicted != 2 {
			t.Errorf("with Last: got %s, want 2 evicted and blocked since %s", stageLine(st), began)
		}
		s.restart()
		r.Last = nil
		if st = s.pass(r); len(st.Evicted) != 0 || !s.blocker(st, "alone").Since.Equal(time.Now()) {
			t.Errorf("without Last: got %s, want both to start again", stageLine(st))
		}
		last := st
		last.Maintenance, last.Evicted = "m0", []drain.PodRef{{Namespace: "x", Name: "y", UID: "z"}}
		s.restart()
		r.Last = &last
		if st = s.pass(r); len(st.Evicted) != 0 {
			t.Errorf("with Last of another maintenance: got %s, want none evicted", stageLine(st))
		}
	})
}
