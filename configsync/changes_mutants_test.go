// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package configsync_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a Syncer that handles policies, proofs and inspectors in any of these ways.
func TestMutantsOfChanges(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a refused config that was forgotten is not judged again", File: "pass.go", Run: "TestForgottenConfig",
			Old: "if !s.snapshot().active.Ref.Same(ref) {", New: "if false {"},
		{Name: "a start doesn't judge changes", File: "syncer.go", Run: "TestTrialIsJudged",
			Old: "return b.judged(ctx, &st, r) })", New: "_ = st\n\t\treturn b.check(ctx, r) })"},
		{Name: "the last known good config is judged as a change", File: "changes.go", Run: "TestProofComesBeforeAdoption",
			Old: "|| r.Same(st.LastKnownGood) {", New: "{"},
		{Name: "new configs are measured against the local one", File: "changes.go", Run: "TestForbiddenChange|TestTrialIsJudged|TestLocalBaseOfChanges",
			Old: "for _, r := range []lkg.Ref{st.LastKnownGood, st.Previous} {", New: "for _, r := range []lkg.Ref{} {"},
		{Name: "a lost good config stands for an empty one", File: "changes.go", Run: "TestLostGoodConfig",
			Old: "p := b.page(ctx, r); p.check.Outcome == lkg.CheckOK {", New: "p := b.page(ctx, r); p.check.Outcome != 99 {"},
		{Name: "an open proof refuses", File: "changes.go", Run: "TestProofComesBeforeAdoption",
			Old: "case errors.Is(err, ErrUndecided), err != nil && ctx.Err() != nil:", New: "case false:"},
		{Name: "an open proof lets through", File: "pass.go", Run: "TestProofComesBeforeAdoption",
			Old: "case lkg.CheckUnavailable, lkg.CheckUndecided:\n\t\t\treturn nil, fmt", New: "case lkg.CheckUnavailable, lkg.CheckUndecided:\n\t\t\treturn nil, nil\n\t\tcase 99:\n\t\t\treturn nil, fmt"},
		{Name: "what is stored is not inspected", File: "book.go", Run: "TestInspector",
			Old: "return s.judgeRemote(ctx, s.keyFor(r.Key), obj)", New: "return s.judge(ctx, s.keyFor(r.Key), obj)"},
		{Name: "who only looks has proofs run", File: "changes.go", Run: "TestExplainAsksProofs", Old: "			p = r.Recall(g)\n", New: "			_ = r\n"},
		{Name: "the next start is foretold without the policy", File: "view.go", Run: "TestExplainJudgesChanges",
			Old: "return b.judged(ctx, &st, r) })", New: "return b.check(ctx, r) })"},
	})
}
