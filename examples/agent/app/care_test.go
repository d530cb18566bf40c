// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/examples/internal/agent/report"
)

// newCared has an address that should answer and doesn't, waits for ack before a promotion, and watches after it.
func newCared(t *testing.T, deadline time.Duration) (n *local, ack string) {
	t.Helper()
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "sick", http.StatusInternalServerError) }))
	t.Cleanup(sick.Close)
	ack = filepath.Join(t.TempDir(), "ack")
	return newLocal(t, "--crash-loop-threshold=0", "--wanted-health-url="+sick.URL, "--ack-file="+ack, "--ack-deadline="+deadline.String()), ack
}

// acknowledges writes the word as a person would.
func acknowledges(t *testing.T, ack, word string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(ack+"-new", []byte(word+"\n"), 0o600), os.Rename(ack+"-new", ack)); err != nil {
		t.Fatal(err)
	}
}

// hasOneEnd reports whether a child runs after one end that nothing explains, and ConfigOK is True.
func hasOneEnd(d report.Document) bool {
	return d.Next.After != nil && d.Next.After.Unexplained == 1 && d.Agent != nil && d.Agent.Child != 0 &&
		d.ConfigOK.Status == "True"
}

// C-35, C-36: an address that is wanted is shown and decides nothing; a config on trial waits for the word of
// --ack-file; and after its promotion the ends of its runs are counted as before, and those that are tolerated do
// nothing.
func TestAgentWaitsForTheWordAndWatchesAfter(t *testing.T) {
	t.Parallel()
	n, ack := newCared(t, time.Hour)
	n.Start(t)
	v1 := n.wants(t, n.Config("maxPods: 12\n"))
	d := n.until(t, "the config waits for the word", func(d report.Document) string {
		if d.Trial == nil || d.InUse.Digest != v1 || !strings.Contains(strings.Join(d.Trial.Failing, "\n"), "acknowledgement: not given yet") {
			return "nobody waits"
		}
		return ""
	})
	if failing := strings.Join(d.Trial.Failing, "\n"); !strings.Contains(failing, "(not required)") || d.Trial.Healthy != "0s" || d.LastKnownGood.Digest != "" {
		t.Errorf("the trial is %+v, the last known good config %+v; want the wanted address among what fails, and no healthy time", d.Trial, d.LastKnownGood)
	}
	acknowledges(t, ack, v1)
	n.until(t, "it is promoted, whatever the wanted address says", promoted(v1))
	for _, pid := range n.Children(t) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	d = n.until(t, "its crash is counted, and it runs again", func(d report.Document) string {
		if !hasOneEnd(d) {
			return fmt.Sprintf("the last start is %+v, the agent %+v, ConfigOK %+v", d.Next.After, d.Agent, d.ConfigOK)
		}
		return ""
	})
	if why := promoted(v1)(d); why != "" || len(d.Rejected) != 0 {
		t.Errorf("%s; rejected is %+v, want nothing done", why, d.Rejected)
	}
}

// A config that nobody acknowledges is left at its deadline, which no restart of the agent begins anew.
func TestAgentLeavesWhatNobodyAcknowledges(t *testing.T) {
	t.Parallel()
	const deadline, step = 3 * time.Second, 300 * time.Millisecond
	n, ack := newCared(t, deadline)
	acknowledges(t, ack, "another")
	v1 := n.wants(t, n.Config("maxPods: 12\n"))
	left := func(d report.Document) bool {
		return rejected(v1, "not acknowledged within 3s")(d) == "" && d.InUse != nil && d.InUse.Digest == ""
	}
	var before time.Duration
	for range 2 * deadline / step {
		p := n.Start(t)
		d := n.until(t, "it waits on, or is left", func(d report.Document) string {
			if waits := n.waited(t); !left(d) && (len(d.Rejected) > 0 || waits < before+step) {
				return fmt.Sprintf("it waits for %s, and before this start for %s", waits, before)
			}
			return ""
		})
		if code := p.Stop(t); code != 0 {
			t.Errorf("asked to stop, the agent exits with %d, want 0", code)
		}
		if left(d) {
			return
		}
		before = n.waited(t)
	}
	t.Errorf("after waits of %s over restarts the config is not left, want that at %s", before, deadline)
}

// waited is for how long the record says that a config waits.
func (n *local) waited(t *testing.T) time.Duration {
	t.Helper()
	r, err := checkpoint.OpenReader(n.StateDir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var on struct{ WaitedNanoseconds time.Duration }
	raw, err := r.Get(t.Context(), "acknowledgement")
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err = errors.Join(err, json.Unmarshal(raw, &on)); err != nil {
		t.Fatal(err)
	}
	return on.WaitedNanoseconds
}
