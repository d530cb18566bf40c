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
		{Name: "check asks no program", File: "check.go", Run: "TestTheProgramIsAsked", Old: "	if l.Prove.Command == \"\" || o.UID == \"\" {", New: "	if true {"},
		{Name: "the guard keeps no answer", File: "unit.go", Run: "TestTheProgramIsAsked", Old: "o, closing = g.On(store), store.Close", New: "o.Store, closing = store, store.Close"},
		{Name: "what a program writes is told", File: "../settings/proof.go", Run: "TestNoCanary", Old: "ShowOutput: l.Prove.ShowOutput,", New: "ShowOutput: true,"},
		{Name: "layers are told by their values", File: "../../../configsync/layers/merge.go", Run: "TestNoCanary",
			Old: "field, spoken[first].Name)", New: "said, spoken[first].Name)"},
		{Name: "a signature is told", File: "../../../configsync/signed/signed.go", Run: "TestNoCanary",
			Old: "must be the ID of a key, a space and an Ed25519 signature in base64\", Entry, n)}", New: "%q must be a signature\", Entry, n, line)}"},
		{Name: "a quantity is told", File: "../kubeletpayload/resources.go", Run: "TestNoCanary",
			Old: "quantity(m[s], 1), key(field, s),", New: "quantity(m[s], 1), key(field, m[s]),"},
		{Name: "an explanation has the bytes", File: "../kubeletpayload/layered.go", Run: "TestNoCanary", Old: "own := layers.Shared\n", New: "own := layers.Shared\n\treturn map[string]string{\"apiVersion\": o.Data[key]}, nil\n"},
		{Name: "a drop-in stays", File: "unit.go", Run: "TestADropInComes", Old: "return wire.Put(ctx, file, o, a)", New: "return file.Render(ctx, []byte(a.Object.Data[a.Key]))"},
	})
}
