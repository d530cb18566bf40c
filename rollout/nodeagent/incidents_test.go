// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "apply is repeated after a reboot",
			Func:    "view.applying",
			Replace: "rec.Boot != v.seen.BootID",
			With:    `rec.Boot == ""`,
			Run:     "TestPowerCutAnywhere",
		},
		{
			Why:     "a report precedes its record on the disk",
			Func:    "(*Agent).store",
			Replace: "a.put(ctx, r)",
			With:    "error(nil)",
			Run:     "TestKilledAnywhere",
		},
		{
			Why:     "a grant for another node is followed",
			Func:    "(*Agent).own",
			Replace: `uid == "" || uid != sh.UID`,
			With:    `uid == ""`,
			Run:     "TestOtherIncarnation",
		},
		{
			Why:     "a revert begins before its intent is on the disk",
			Func:    "(*Agent).run",
			Replace: "a.put(ctx, r)",
			With:    "error(nil)",
			Run:     "TestPowerCutAnywhere",
		},
		{
			Why:     "healthy time survives a reboot",
			Func:    "trial.credit",
			Replace: "t.Boot, t.Healthy = now.boot, 0",
			With:    "t.Boot = now.boot",
			Run:     "TestHealthyTimeOverRestarts",
		},
		{
			Why:     "the children of a hook outlive its deadline",
			Package: "../../internal/process",
			Func:    "signalGroup",
			Replace: "-leader.Pid",
			With:    "leader.Pid",
			Run:     "TestHookIsKilledAtItsDeadline",
		},
		{
			Why:     "a hook inherits the secrets of the agent",
			Func:    "Exec.NewUpdater",
			Replace: `[]string{"PATH=" + os.Getenv("PATH")}`,
			With:    "os.Environ()",
			Run:     "TestHookEnvironmentByDefault",
		},
	})
}
