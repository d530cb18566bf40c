// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"testing"
	"time"

	"github.com/belayproject/belay/lkg"
)

// TestClassify: C-01, C-33. The first rule that fits decides.
// L-CS-01, L-CS-33.
func TestClassify(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	inBoot := func(id string) *lkg.Start { return &lkg.Start{At: at, BootID: id, Cause: lkg.CauseUnknown} }
	marker := func(kind lkg.Cause, boot string) *lkg.Marker {
		return &lkg.Marker{ID: "m", At: at, Kind: kind, BootID: boot}
	}
	crash, clean := lkg.Exit{Kind: lkg.ExitCrash, Detail: "signal: killed"}, lkg.Exit{Kind: lkg.ExitClean}
	for _, c := range []struct {
		name   string
		prev   *lkg.Start
		marker *lkg.Marker
		boot   string
		exit   lkg.Exit
		want   lkg.Cause
	}{
		{"nothing is known", nil, nil, "b1", lkg.Exit{}, lkg.CauseUnknown},
		{"nothing is known, not even the boot", inBoot(""), nil, "", lkg.Exit{}, lkg.CauseUnknown},
		{"adoption", inBoot("b1"), marker(lkg.CauseAdoption, "b1"), "b1", clean, lkg.CauseAdoption},
		{"planned", inBoot("b1"), marker(lkg.CausePlanned, "b1"), "b1", lkg.Exit{}, lkg.CausePlanned},
		{"planned, on the first start", nil, marker(lkg.CausePlanned, "b1"), "b1", lkg.Exit{}, lkg.CausePlanned},
		{"planned, over a reboot", inBoot("b1"), marker(lkg.CauseAdoption, "b1"), "b2", lkg.Exit{}, lkg.CauseAdoption},
		{"planned, and then killed", inBoot("b1"), marker(lkg.CausePlanned, "b1"), "b1", crash, lkg.CausePlanned},
		{"marker of an older boot", inBoot("b2"), marker(lkg.CausePlanned, "b1"), "b2", lkg.Exit{}, lkg.CauseUnknown},
		{"marker of an older boot, and a crash", inBoot("b2"), marker(lkg.CausePlanned, "b1"), "b2", crash, lkg.CauseCrash},
		{"marker of an older boot, and a reboot", inBoot("b2"), marker(lkg.CausePlanned, "b1"), "b3", crash, lkg.CauseReboot},
		{"marker of a kind that nobody plans", inBoot("b1"), marker(lkg.CauseReboot, "b1"), "b1", crash, lkg.CauseCrash},
		{
			"marker without an id can not be consumed", inBoot("b1"), &lkg.Marker{Kind: lkg.CausePlanned, BootID: "b1"}, "b1",
			crash, lkg.CauseCrash,
		},
		{"reboot", inBoot("b1"), nil, "b2", lkg.Exit{}, lkg.CauseReboot},
		{"reboot after a crash", inBoot("b1"), nil, "b2", crash, lkg.CauseReboot},
		{"reboot can not be told without an id", inBoot("b1"), nil, "", lkg.Exit{}, lkg.CauseUnknown},
		{"crash", inBoot("b1"), nil, "b1", crash, lkg.CauseCrash},
		{"crash on the first start on record", nil, nil, "b1", crash, lkg.CauseCrash},
		{"stopped on request, without a marker", inBoot("b1"), nil, "b1", lkg.Exit{Kind: lkg.ExitPlanned}, lkg.CausePlanned},
		{"stopped on request, over a reboot", inBoot("b1"), nil, "b2", lkg.Exit{Kind: lkg.ExitPlanned}, lkg.CauseReboot},
		{"clean exit that nobody planned", inBoot("b1"), nil, "b1", clean, lkg.CauseUnknown},
		{"not executed", inBoot("b1"), nil, "b1", lkg.Exit{Fault: lkg.FaultNotExecuted}, "NotExecuted"},
		{"the environment failed", inBoot("b1"), nil, "b1", crashedBy(lkg.FaultEnvironment), "Environment"},
		{"the supervisor died", nil, nil, "b1", lkg.Exit{Kind: lkg.ExitClean, Fault: lkg.FaultSupervisor}, "Supervisor"},
		{"stopped on request, with a fault", nil, nil, "b1",
			lkg.Exit{Kind: lkg.ExitPlanned, Fault: lkg.FaultSupervisor}, lkg.CausePlanned},
		{"reboot, with a fault", inBoot("b1"), nil, "b2", lkg.Exit{Fault: lkg.FaultEnvironment}, lkg.CauseReboot},
	} {
		got, detail := lkg.Classify(c.prev, c.marker, lkg.Moment{Wall: at.Add(-time.Hour), BootID: c.boot}, c.exit)
		if got != c.want {
			t.Errorf("%s: %s (%s), want %s", c.name, got, detail, c.want)
		}
		if detail == "" {
			t.Errorf("%s: no detail (rule: an ignored start is listed with its reason)", c.name)
		}
	}
}

func crashedBy(f lkg.Fault) lkg.Exit { return lkg.Exit{Kind: lkg.ExitCrash, Fault: f} }
