// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches commands of a unit that are broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "every end was asked for", File: "unit.go", Run: "TestUnitCommandsLeave", Old: `if os.Getenv("MAINPID") == "" {`, New: "if false {"},
		{Name: "ends are not noted", File: "unit.go", Run: "TestTheAgentIsTold", Old: "return u.Ended(ctx, end)", New: "_ = end; return nil"},
		{Name: "a guard beside an agent acts", File: "unit.go", Run: "TestGuardOnAny", Old: "if errors.Is(err, checkpoint.ErrLocked) {", New: "if err == nil {"},
		{Name: "a disk that hangs holds the unit", File: "unit.go", Run: "TestUnitCommandsEndInTime",
			Old: "case <-ctx.Done():\n\t\treturn context.Cause(ctx)", New: "case <-make(chan int):\n\t\treturn context.Cause(ctx)"},
	})
}
