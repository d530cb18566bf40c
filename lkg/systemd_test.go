// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg_test

import (
	"strings"
	"testing"

	"github.com/belayproject/belay/lkg"
)

// TestSystemdExit: C-01, C-33. What systemd says of an end becomes evidence; what it does not say stays unknown, and
// counts.
func TestSystemdExit(t *testing.T) {
	for _, c := range []struct {
		result, code, status string
		want                 lkg.ExitKind
	}{
		{"success", "exited", "0", lkg.ExitClean},
		{"success", "exited", "143", lkg.ExitClean}, // listed as a success in the unit: nobody knows who wanted it
		{"success", "killed", "TERM", lkg.ExitPlanned},
		{"success", "killed", "INT", lkg.ExitPlanned},
		{"success", "killed", "HUP", lkg.ExitPlanned},
		{"success", "killed", "PIPE", lkg.ExitCrash},
		{"success", "killed", "KILL", lkg.ExitCrash},
		{"success", "dumped", "ABRT", lkg.ExitCrash},
		{"success", "", "", lkg.ExitUnknown},
		{"exit-code", "exited", "255", lkg.ExitCrash},
		{"signal", "killed", "KILL", lkg.ExitCrash},
		{"signal", "killed", "TERM", lkg.ExitCrash},
		{"core-dump", "dumped", "SEGV", lkg.ExitCrash},
		{"watchdog", "dumped", "ABRT", lkg.ExitCrash},
		{"oom-kill", "killed", "KILL", lkg.ExitCrash},
		{"timeout", "killed", "TERM", lkg.ExitCrash},
		{"protocol", "exited", "0", lkg.ExitCrash},
		{"resources", "", "", lkg.ExitUnknown},
		{"start-limit-hit", "", "", lkg.ExitUnknown},
		{"exec-condition", "exited", "1", lkg.ExitUnknown},
		{"of-a-later-version", "exited", "0", lkg.ExitUnknown},
		{"", "", "", lkg.ExitUnknown},
	} {
		got := lkg.SystemdExit(c.result, c.code, c.status)
		if got.Kind != c.want {
			t.Errorf("%q %q %q: %q, want %q", c.result, c.code, c.status, got.Kind, c.want)
		}
		if (got.Detail == "") != (c.result == "" && c.code == "" && c.status == "") ||
			!strings.Contains(got.Detail, c.status) {
			t.Errorf("%q %q %q: detail %q, want the words of systemd", c.result, c.code, c.status, got.Detail)
		}
	}
	if long := lkg.SystemdExit(strings.Repeat("x", 9999), "\xff", strings.Repeat("y", 9999)).Detail; len(long) > 100 {
		t.Errorf("a detail of %d bytes, want it cut short", len(long))
	}
}
