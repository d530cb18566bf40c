// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// stopped is a fleet on which a fatal revision has stopped as it should, ended one that has its revision.
func stopped() Seen {
	return Seen{
		Nodes: 20, Runs: map[string]int{First: 18, Fatal: 2}, Crashed: 3, Again: 3, Most: 4, Cap: 4, Bound: 6,
		Status: &v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutPhase(rollout.Frozen), Acknowledged: true, Done: "2/20"},
	}
}

func ended() Seen {
	return Seen{
		Nodes: 20, Runs: map[string]int{First: 20}, Most: 4, Cap: 4, Bound: 6,
		Status: &v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutPhase(rollout.Completed), Done: "20/20"},
	}
}

// What an act must lead to is missed wherever one thing of it was not seen.
func TestMissing(t *testing.T) {
	all := Acts()
	good, fatal, back := all[0], all[1], all[2]
	for _, c := range []struct {
		name   string
		act    Act
		seen   Seen
		change func(*Seen)
		want   string // "" for nothing
	}{
		{"good", good, ended(), func(*Seen) {}, ""},
		{"good, under way", good, ended(), func(s *Seen) { s.Status.Phase = v1alpha1.RolloutPhase(rollout.Running) }, "the rollout ends (it is Running)"},
		{"good, one behind", good, ended(), func(s *Seen) { s.Runs = map[string]int{First: 19, "": 1} }, "every node runs v1 (19 of 20)"},
		{"good, one away", good, ended(), func(s *Seen) { s.Away = 1 }, "no node is away (1 are)"},
		{"good, cap broken", good, ended(), func(s *Seen) { s.Most = 5 }, "at most 4 nodes are away at a time (5 were)"},
		{"good, not seen", good, ended(), func(s *Seen) { s.Status = nil }, "the controller looks at it"},
		{"back", back, ended(), func(*Seen) {}, ""},
		{"back, one left", back, ended(), func(s *Seen) { s.Runs = map[string]int{First: 19, Fatal: 1} }, "every node runs v1 (19 of 20)"},
		{"fatal", fatal, stopped(), func(*Seen) {}, ""},
		{"fatal, at the bound", fatal, stopped(), func(s *Seen) { s.Crashed, s.Again = 6, 6 }, ""},
		{"fatal, beyond the bound", fatal, stopped(), func(s *Seen) { s.Crashed, s.Again = 7, 7 }, "no more nodes break than was said before, 6 (7 did)"},
		{"fatal, no bound", fatal, stopped(), func(s *Seen) { s.Bound = -1 }, "than was said before, -1"},
		{"fatal, not stopped", fatal, stopped(), func(s *Seen) { s.Status.Phase = v1alpha1.RolloutPhase(rollout.Running) }, "the rollout stops by itself (it is Running)"},
		{"fatal, not acknowledged", fatal, stopped(), func(s *Seen) { s.Status.Acknowledged = false }, "the rollout stops by itself"},
		{"fatal, harmless", fatal, stopped(), func(s *Seen) { s.Crashed, s.Again = 0, 0 }, "the revision breaks a node"},
		{"fatal, one down", fatal, stopped(), func(s *Seen) { s.Again = 2 }, "each broken node runs v1 again (2 of 3)"},
		{"fatal, one under way", fatal, stopped(), func(s *Seen) { s.Away = 1 }, "what was under way has ended (1 nodes are away)"},
		{"fatal, one in flight", fatal, stopped(), func(s *Seen) { s.Status.Counts = &v1alpha1.RolloutCounts{InFlight: 1} }, "what was under way has ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.change(&c.seen)
			got := c.act.Missing(c.seen)
			if len(got) > 1 || (c.want == "") != (len(got) == 0) || !strings.Contains(strings.Join(got, ""), c.want) {
				t.Errorf("missing: got %q, want %q alone", got, c.want)
			}
		})
	}
}

// Row and summary tell the figures, also where next to nothing was seen.
func TestTables(t *testing.T) {
	fatal := Acts()[1]
	s := stopped()
	s.Status.Stage = &v1alpha1.StageStatus{Name: "some", Number: 2, Of: 3}
	var cells []string
	for _, c := range fatal.Row(s, 90*time.Second, "").Cells {
		cells = append(cells, c.Text)
	}
	if got, want := strings.Join(cells, "|"), "v2|Frozen|2/3 some|2/20|0 of 4|3, bound 6|1m30s"; got != want {
		t.Errorf("row: got %q, want %q", got, want)
	}
	_, rows := Summary([]Result{{Act: fatal, Seen: s, Took: 90 * time.Second, Updated: 5, Controller: 50, Agents: 61}, {Act: fatal, Missing: []string{"all"}}})
	for i, want := range []string{"v2 fatal|stopped itself|2/20|1m30s|4 (4)|3 (6)|5|10.0 + 12.2", "v2 fatal|NOT stopped itself|-|0.0s|0 (0)|0 (0)|0|-"} {
		cells = nil
		for _, c := range rows[i].Cells {
			cells = append(cells, c.Text)
		}
		if got := strings.Join(cells, "|"); got != want {
			t.Errorf("summary: got %q, want %q", got, want)
		}
	}
	if got, want := Map(make([]string, 51), func(string) rune { return SignDone }), strings.Repeat("#", 50)+" #"; got != want {
		t.Errorf("map: got %q, want %q", got, want)
	}
}

// The fatal config decodes and is valid, and breaks machines with swap alone; the others break none.
func TestFatalConfig(t *testing.T) {
	for name, breaks := range map[string]bool{First: false, Fatal: true} {
		cfg := decode(t, Data(name)[kubelet.Key])
		if got := Breaks(true, cfg) != ""; got != breaks || Breaks(false, cfg) != "" {
			t.Errorf("%s breaks a machine with swap: %t, want %t; one without: %q", name, got, breaks, Breaks(false, cfg))
		}
	}
	if why := Breaks(true, decode(t, Init)); why != "" {
		t.Errorf("what the nodes came with breaks them: %s", why)
	}
}
