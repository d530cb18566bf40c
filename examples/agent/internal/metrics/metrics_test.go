// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/examples/internal/agent/history"
	"github.com/belayproject/belay/lkg"
)

// scrape gets the page over a real connection and gives the lines of our own metrics.
func scrape(t *testing.T, url string) []string {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", resp.StatusCode, err)
	}
	var out []string
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "belay_config_") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// L-CS-16, R-CS-84: the names and labels of what is really served, in each phase of a config's life.
func TestScrapeOfTheRealOutput(t *testing.T) {
	good := lkg.Ref{Namespace: "ns", Name: "v1", UID: "u1", ResourceVersion: "7", Key: "kubelet", Digest: "sha256:1"}
	bad := lkg.Ref{Namespace: "ns", Name: "v2", UID: "u2", ResourceVersion: "9", Key: "kubelet", Digest: "sha256:2"}
	var s configsync.Status
	var totals []history.Total
	drifted := false
	server := httptest.NewServer(Handler(func() configsync.Status { return s }, func() []history.Total { return totals }, func() bool { return drifted }))
	defer server.Close()
	want := func(phase string, lines ...string) {
		t.Helper()
		got := scrape(t, server.URL)
		slices.Sort(lines)
		slices.Sort(got)
		if !slices.Equal(got, lines) {
			t.Errorf("%s: got\n%s\nwant\n%s", phase, strings.Join(got, "\n"), strings.Join(lines, "\n"))
		}
	}
	want("before the first start")
	s = configsync.Status{
		Assigned: good, Active: good, Condition: lkg.Condition{Status: lkg.StatusTrue},
		Trial: &configsync.TrialStatus{Needed: 10 * time.Minute, Healthy: 4 * time.Minute, Counted: 2},
	}
	want("on trial",
		`belay_config_assigned{key="kubelet",resource_version="7",source="ns/v1",uid="u1"} 1`,
		`belay_config_active{key="kubelet",resource_version="7",source="ns/v1",uid="u1"} 1`,
		`belay_config_last_known_good{key="",resource_version="",source="local",uid=""} 1`,
		`belay_config_error 0`, `belay_config_alarm 0`, `belay_config_drifted 0`,
		`belay_config_trial_remaining_seconds 360`, `belay_config_trial_restarts 2`)
	s = configsync.Status{
		Assigned: bad, Active: good, LastKnownGood: good, Alarm: "nothing is left", Condition: lkg.Condition{Status: lkg.StatusFalse},
		Rejected: []lkg.BadEntry{{Ref: bad, Reason: "failed to validate current (UID: u2)"}},
	}
	drifted = true
	totals = []history.Total{{Kind: history.RolledBack, Class: "Invalid", Count: 3}, {Kind: history.Adopted, Count: 4}}
	want("rolled back",
		`belay_config_assigned{key="kubelet",resource_version="9",source="ns/v2",uid="u2"} 1`,
		`belay_config_active{key="kubelet",resource_version="7",source="ns/v1",uid="u1"} 1`,
		`belay_config_last_known_good{key="kubelet",resource_version="7",source="ns/v1",uid="u1"} 1`,
		`belay_config_error 1`, `belay_config_alarm 1`, `belay_config_drifted 1`, `belay_config_rejected{class="Invalid"} 1`,
		`belay_config_events_total{class="Invalid",kind="RolledBack"} 3`, `belay_config_events_total{class="",kind="Adopted"} 4`)
}
