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
		{Name: "a signed config keeps its old name", File: "sign.go", Run: "TestSign", Old: "	if named {", New: "	if false && named {"},
		{Name: "what nodes refuse is signed", File: "sign.go", Run: "TestSignRefuses",
			Old: "if _, err := judge(ctx, l, object(cm)); err != nil {", New: "if _, err := judge(ctx, l, object(cm)); false {"},
		{Name: "check asks for no signature", File: "check.go", Run: "TestSign", Old: "	if o.UID != \"\" {\n\t\tfor", New: "	if false {\n\t\tfor"},
		{Name: "check has no policy", File: "check.go", Run: "TestCheckAsks",
			Old: "disruption, err := opts.Changes.Judge([]byte(before.Data[l.Key]), []byte(to.Data[l.Key]))", New: "_, disruption, err := before, string(to.UID), error(nil)"},
		{Name: "a drop-in stays", File: "unit.go", Run: "TestADropInComes", Old: "return wire.Put(file, o, a)", New: "return file.Write([]byte(a.Object.Data[a.Key]))"},
	})
}
