// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belayproject/belay/rollout"
)

// page is what is served, of one rollout.
func page(s *Set) string {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var all []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.Contains(line, `rollout="r"`) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return strings.Join(all, "\n")
}

// R-RO-32: a rollout that is paused for too long has a series of its own, with the reason, as long as that is so.
func TestStalledShows(t *testing.T) {
	s := New()
	m, _ := s.Rollouts("d")
	const want = `belay_rollout_stalled{domain="d",reason="PausedTooLong",rollout="r"} 1`
	for _, c := range []struct{ reason, want string }{
		{"", ""}, {"PausedTooLong", want}, {"PausedTooLong", want}, {"Frozen", strings.Replace(want, "PausedTooLong", "Frozen", 1)}, {"", ""},
	} {
		if m.Stalled("r", c.reason); page(s) != c.want {
			t.Errorf("%q: got %q, want %q", c.reason, page(s), c.want)
		}
	}
}

// Who leads no more shows nothing of how rollouts stand: that is the next leader's.
func TestStandingIsForgotten(t *testing.T) {
	s := New()
	m, forget := s.Rollouts("d")
	m.Rollout("r", rollout.Running, rollout.Counts{Selected: 2, Waiting: 2}, map[rollout.Reason]int{"Cap": 2})
	m.Stalled("r", "DrainBlocked")
	if n := len(strings.Split(page(s), "\n")); n != 10 {
		t.Errorf("%d series, want 7 states, a phase, a reason to wait, and one to be stalled:\n%s", n, page(s))
	}
	if forget(); page(s) != "" {
		t.Errorf("after the term: got %s, want nothing", page(s))
	}
	m.Rollout("r", rollout.Paused, rollout.Counts{}, nil)
	if !strings.Contains(page(s), `phase="Paused"`) {
		t.Errorf("in the next term: got %s, want the phase", page(s))
	}
}
