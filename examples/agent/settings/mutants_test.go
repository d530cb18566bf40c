// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches settings that are broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "defaults are filled in after the drop-ins", File: "layers.go", Run: "TestAKubelet/pulls", Old: "Doc: kubeletpayload.Filled(own)}", New: "Doc: nil}"},
		{Name: "drop-ins of others may be bad by themselves", File: "judges.go", Run: "TestDropIns", Old: "if err := v.Validate(ctx, c); err != nil {", New: "if false {"},
		{Name: "the agent's drop-in is merged twice", File: "layers.go", Run: "TestDropIns", Old: "err != nil || name == DropIn {", New: "err != nil {"},
		{Name: "all drop-ins are weaker", File: "layers.go", Run: "TestDropIns", Old: "cmp.Less(top, DropIn)", New: "true || cmp.Less(top, DropIn)"},
		{Name: "other files are read", File: "layers.go", Run: "TestDropIns", Old: "filepath.Ext(path) != dropInEnd", New: "false"},
		{Name: "kubeadm's file is written", File: "layers.go", Run: "TestTargets", Old: "render.Check(l.Target(value), l.NotOurs()...)", New: "render.Check(l.Target(value))"},
		{Name: "a directory that no kubelet reads is taken", File: "layers.go", Run: "TestTargets", Old: "err != nil || info.IsDir()", New: "err != nil || true || info.IsDir()"},
		{Name: "the policy compares what nodes share", File: "judges.go", Run: "TestThePolicy", Old: "if c.around != nil {", New: "if false {"},
		{Name: "the pool is not asked", File: "judges.go", Run: "TestThePolicy", Old: "Pool: c.pool}", New: `Pool: "canary"}`},
		{Name: "keys that can't be read make a config bad", File: "judges.go", Run: "TestTrustedKeys",
			Old: `fmt.Errorf("%w: %w", configsync.ErrUndecided, err)`, New: `fmt.Errorf("keys: %w", err)`},
		{Name: "no signature is asked for", File: "judges.go", Run: "TestTrustedKeys", Old: "return keys.Inspect(ctx, key, o)", New: "_ = keys; return nil"},
		{Name: "the program judges what nodes share", File: "proof.go", Run: "TestTheProgram", Old: "	if around != nil {\n\t\to.Payload = merged(around)", New: "	if false {\n\t\to.Payload = merged(around)"},
		{Name: "answers are forgotten", File: "proof.go", Run: "TestTheProgram", Old: "	if store != nil {", New: "	if false {"},
		{Name: "answers are for all versions", File: "proof.go", Run: "TestTheProgram", Old: "cmp.Or(l.Prove.Version, Version())", New: "cmp.Or(Version(), l.Prove.Version)"},
		{Name: "a program that can't be asked refuses", File: "proof.go", Run: "TestAProgramThat", Old: "return fmt.Errorf(\"%w: %w\", configsync.ErrUndecided, u.err)", New: "return u.err"},
		{Name: "a bad drop-in of others makes a config bad", File: "judges.go", Run: "TestDropIns",
			Old: "return fmt.Errorf(\"%w: what this node lays around it: %w\", configsync.ErrUndecided, err)", New: "return err"},
	})
}
