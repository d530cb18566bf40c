// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// build makes members from a line: one letter a node, a space between groups. w waits, d drains, D is drained, F has failed, b has
// none but blocked pods left, p has been looked at in this pass and stays off its node, x is over its deadline.
func build(line string) []*member {
	var out []*member
	group := 0
	for _, c := range line {
		if c == ' ' {
			group++
			continue
		}
		m := &member{node: fmt.Sprintf("n%d", len(out)), group: group, status: Status{Phase: Pending}}
		switch c {
		case 'd':
			m.begun, m.visited, m.status.Phase = true, true, Draining
		case 'D':
			m.begun, m.visited, m.status.Phase = true, true, Drained
		case 'F':
			m.visited, m.status.Phase = true, Failed
		case 'x':
			m.begun, m.visited, m.status.Phase, m.status.Reason = true, true, Draining, reasonDeadlinePassed
		case 'b':
			m.begun, m.visited, m.status.Phase = true, true, Draining
			m.status.Blockers = []Blocker{{Action: Block, Reason: BudgetNeverAllows}}
		case 'o':
			m.begun, m.visited, m.status.Phase = true, true, Draining
			m.status.Blockers = []Blocker{{Action: Block, Reason: BudgetNeverAllows}, {Action: Block, Reason: AdmissionDenied}}
		case 'p':
			m.visited, m.status.Reason = true, reasonPodUnhealthy
		}
		out = append(out, m)
	}
	return out
}

func names(members []*member) string {
	out := ""
	for _, m := range members {
		out += m.node + " "
	}
	return out
}

// R-DR-04 (one node at a time by default), R-DR-20 (a group starts when its predecessor is drained, or skipped by rule).
func TestAdmission(t *testing.T) {
	for _, c := range []struct {
		line  string
		slots int
		skip  bool
		want  string
	}{
		{"wwww", 1, false, "n0 "},
		{"dwww", 1, false, ""},
		{"Dwww", 1, false, "n1 "},
		{"wwww", 3, false, "n0 n1 n2 "},
		{"dDww", 2, false, "n2 "},
		{"pwww", 1, false, "n1 "},
		{"Fwww", 1, false, ""},
		{"Fwww", 1, true, "n1 "},
		{"xwww", 1, false, ""},
		{"xwww", 1, true, "n1 "},
		{"ww ww", 4, false, "n0 n1 "},
		{"Dd ww", 4, false, ""},
		{"DD ww", 4, false, "n2 n3 "},
		{"Dp ww", 4, false, ""},
		{"DF ww", 4, false, ""},
		{"DF ww", 4, true, "n2 n3 "},
		{"bwww", 1, false, "n1 "},
		{"owww", 1, false, ""},
		{"bdww", 1, false, ""},
		{"bdww", 2, false, "n2 "},
		{"b ww", 1, false, ""},
	} {
		if got := names(admit(build(c.line), c.slots, c.skip, Drain)); got != c.want {
			t.Errorf("%q with %d slots, skip %v: got %q, want %q", c.line, c.slots, c.skip, got, c.want)
		}
	}
}

func TestWhoWaitsIsTold(t *testing.T) {
	members := build("dw ww")
	admit(members, 1, false, Drain)
	for i, want := range []Reason{"", reasonWaitingForSlot, reasonWaitingForGroup, reasonWaitingForGroup} {
		if got := members[i].status.Reason; got != want {
			t.Errorf("node %d: got reason %q, want %q", i, got, want)
		}
	}
}

func TestNodesThatHaveBegunComeBeforeAnyOther(t *testing.T) {
	members := build("www")
	members[2].begun = true
	if got := names(admit(members, 1, false, Drain)); got != "n2 " {
		t.Errorf("got %q first, want the node that has begun alone", got)
	}
}

// R-DR-04: percent of all nodes of the set, rounded down, at least one.
func TestSlots(t *testing.T) {
	ten := [][]string{make([]string, 4), make([]string, 6)}
	for _, c := range []struct {
		max  intstr.IntOrString
		want int
	}{{intstr.IntOrString{}, 1}, {intstr.FromInt32(3), 3}, {intstr.FromString("20%"), 2}, {intstr.FromString("29%"), 2}, {intstr.FromString("1%"), 1}} {
		if got := slots(Set{Groups: ten, MaxNodes: c.max}); got != c.want {
			t.Errorf("%s of 10: got %d, want %d", c.max.String(), got, c.want)
		}
	}
}

func TestAgendaLeavesOutWhatHasNoReason(t *testing.T) {
	now := time.Unix(1000, 0)
	a := newAgenda()
	members := build("ddd")
	for _, m := range members {
		m.visited = false
		a.done(m.node, a.begin(m.node), now, 0)
	}
	a.done("n1", a.begin("n1"), now, time.Second)
	a.changed("n2")
	if after := a.leaveOut(members, now); after != time.Second || !members[0].visited || !members[1].visited || members[2].visited {
		t.Errorf("got %v, left out %v %v %v; want 1s, and only the changed node looked at", after, members[0].visited, members[1].visited, members[2].visited)
	}
	members[1].visited = false
	if a.leaveOut(members, now.Add(time.Second)); members[1].visited {
		t.Error("a node whose time has come is left out")
	}
	begin := a.begin("n0")
	a.changed("n0")
	a.done("n0", begin, now, 0)
	members[0].visited = false
	if a.leaveOut(members, now); members[0].visited {
		t.Error("a change during the pass is lost")
	}
}
