// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/machine"
)

// TestOneBudgetForAll: the slot of a machine goes on with its next rung; what the budget refuses waits, with its reason, and so does what another check has begun.
func TestOneBudgetForAll(t *testing.T) {
	first := machine.DecideHealth(sick(check()))
	if remedies(first) != "a:Reboot" || !machine.RemedyLoan(first.Remedies[0].Loan) || first.Remedies[0].Loan != first.Status.Attempts[0].Loan() {
		t.Fatalf("first: %+v", first)
	}
	next := later(sick(check()), first, machine.DefaultWait)
	next.Budget = 0
	if d := machine.DecideHealth(next); remedies(d) != "a:Replace" || d.Remedies[0].Loan == first.Remedies[0].Loan {
		t.Errorf("the next rung, with no other slot: %+v", d)
	}
	refused := sick(check())
	refused.Refused = map[string]string{refused.Machines[0].UID: "the zone is full"}
	other := sick(check())
	other.Others = first.Status.Attempts
	for want, v := range map[string]machine.HealthView{
		"Reboot waits for the disruption budget: the zone is full": refused,
		"Reboot waits for the Reboot of another health check":      other,
	} {
		if d := machine.DecideHealth(v); remedies(d) != "" || len(d.Skipped) != 1 || d.Skipped[0].Reason != want || len(d.Status.Attempts) != 0 || d.After == 0 {
			t.Errorf("want %q: %+v", want, d)
		}
	}
	agents := check(func(s *machine.HealthSpec) { s.Ladder = []machine.Rung{{Kind: machine.RemedyRestartAgent}} })
	if d := machine.DecideHealth(sick(agents)); len(d.Remedies) != 1 || d.Remedies[0].Loan != "" {
		t.Errorf("an agent takes no slot: %+v", d)
	}
}

// TestDisruptionsAreForgotten: a disruption has its slot until the machine is gone, and no longer than somebody waits for it.
func TestDisruptionsAreForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*machine.Machine)
		want   int
	}{
		"as it was":      {func(*machine.Machine) {}, 1},
		"paused":         {func(m *machine.Machine) { m.Spec.Paused = true }, 1},
		"deleted":        {deleted, 1},
		"decommissioned": {decommissioned, 0},
		"in quarantine":  {annotated(machine.QuarantineAnnotation, ""), 0},
		"not selected":   {func(m *machine.Machine) { m.Labels = nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			v := later(sick(check()), machine.DecideHealth(sick(check())), time.Minute)
			c.change(&v.Machines[0])
			if d := machine.DecideHealth(v); len(d.Status.Attempts) != c.want || len(d.Skipped) > 0 && !strings.Contains(d.Skipped[0].Reason, "waits") {
				t.Errorf("%d attempts, want %d: %+v", len(d.Status.Attempts), c.want, d)
			}
		})
	}
}
