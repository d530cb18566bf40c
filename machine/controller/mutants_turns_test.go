// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// R-MA-02, R-MA-13, R-MA-16, R-MA-21 and R-MA-27: each way to break the turns of the control plane, the checks of new machines, and what becomes of Nodes and edits that
// nobody waits for, is noticed.
func TestMutantsOfTurns(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a backup that fails stops nothing", File: "../backup.go", Run: "TestBackupComesBefore",
			Old: "if l.o.Err != nil || !l.o.Done {", New: "if l.o.Err == nil && !l.o.Done {"},
		{Name: "a backup is not stored before it begins", File: "../backup.go", Run: "TestControlPlaneGoes|TestKilledAroundTheBackup",
			Old: "case name != StepTurn && name != StepBackup:", New: "case false:"},
		{Name: "the control plane goes all at once", File: "view.go", Run: "TestControlPlaneGoes",
			Old: "v.Busy, v.Yield = why, yields", New: "v.Yield = yields"},
		{Name: "without a backup the control plane goes all at once", File: "../backup.go", Run: "TestControlPlaneGoes",
			Old: "return Protected(p.Machine.Spec.Roles) }", New: "return p.Backup && Protected(p.Machine.Spec.Roles) }"},
		{Name: "a check that has not ended has passed", File: "view.go", Run: "TestSilentStarter", Old: "missing == \"\" && ctx.Err() != nil", New: "missing != \"\" && ctx.Err() != nil"},
		{Name: "edits of a retired machine are not observed", File: "reconcile.go", Run: "TestRetiredMachine", Old: "if !settled(s.Phase) {", New: "if s.Phase != \"\" {"},
		{Name: "a stray is forgotten when it was looked for", File: "../stray.go", Run: "TestStrayOf|TestKilledWhileANode", Old: "p.s.Strays = append(p.s.Strays, s)", New: "_ = s"},
	})
}
