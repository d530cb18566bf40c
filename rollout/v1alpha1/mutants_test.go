// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch conversions that are broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "lost progress is taken for a new rollout", File: "progress.go", Run: "TestProgressThatCannotBeRead",
			Old: "if len(s.History) > 0 {", New: "if len(s.History) > 99 {"},
		{Name: "fields of a newer version are dropped", File: "rollout_progress.go", Run: "TestProgressKeepsWhatItDoesNotKnow",
			Old: "plain.unknown = all", New: "plain.unknown = nil"},
		{Name: "nanoseconds are cut", File: "progress_node.go", Run: "TestProgressHasEveryField",
			Old: "t.UTC().Format(time.RFC3339Nano)", New: "t.UTC().Format(time.RFC3339)"},
		{Name: "a state that is not known is taken", File: "progress_node.go", Run: "TestProgressThatCannotBeRead",
			Old: "known != nil && !slices.Contains(known, T(text))", New: "known == nil && slices.Contains(known, T(text))"},
		{Name: "a node is forgotten without its failure", File: "progress_node.go", Run: "TestProgressHasEveryField",
			Old: "\t\tflagField(\"failed\", func(e *node) *bool { return &e.Failed }),\n", New: ""},
		{Name: "a UID is taken for a line", File: "table.go", Run: "TestProgressIsStoredExactly",
			Old: "text[0] == '#' || ", New: ""},
		{Name: "a table is taken for a compressed one", File: "table.go", Run: "TestProgressIsStoredExactly",
			Old: "strings.HasPrefix(text, packedPrefix) || ", New: ""},
		{Name: "the time of an outcome is that of the first", File: "progress.go", Run: "TestProgressIsStoredExactly",
			Old: "outcomes, last = append(outcomes, o), o.At", New: "outcomes = append(outcomes, o)"},
		{Name: "tables are as long as they are", File: "table.go", Run: "TestRolloutOfFiveThousandNodesIsSmall",
			Old: "if len(table) <= plainText {", New: "if len(table) <= largestTable {"},
		{Name: "a revision is a name", File: "policy.go", Run: "TestPolicyRefusesOtherRevisions",
			Old: "if r.Spec.Digest != ref.Digest {", New: "if r.Spec.Digest == \"\" {"},
		{Name: "the content is not looked at", File: "policy.go", Run: "TestPolicyRefusesOtherRevisions",
			Old: `r.Spec.Opaque != "" || r.Spec.ConfigMapRef != nil; hasContent {`, New: `r.Spec.Opaque == "-"; hasContent {`},
		{Name: "detectors can't be off", File: "policy_parts.go", Run: "TestDetectorsCanBeOff",
			Old: "all := []rollout.Detector{}", New: "var all []rollout.Detector"},
		{Name: "24:01 is a time of day", File: "policy_parts.go", Run: "TestPolicyNamesTheField",
			Old: " || h == 24 && m > 0", New: ""},
		{Name: "a deadline has another name", File: "policy_parts.go", Run: "TestPolicyNamesTheField",
			Old: `strings.TrimSuffix(head, "Within")`, New: "head"},
		{Name: "a rollback goes on over another spec", File: "policy_parts.go", Run: "TestRollbackByNumber",
			Old: "b != nil && b.Over.is(r.Spec.targets())", New: "b != nil"},
		{Name: "a rollback is done at each look", File: "history.go", Run: "TestRollbackIsPure",
			Old: "r.Status.Progress.Handled == v.Request {", New: "r.Status.Progress.Handled == \"\" {"},
		{Name: "what is irreversible is gone back from", File: "history.go", Run: "TestRollbackIsRefused",
			Old: "if e.Irreversible && e.Begun {", New: "if e.Irreversible && !e.Begun {"},
		{Name: "back to what was superseded", File: "history.go", Run: "TestEntryBefore", Old: "if e.Result != HistoryCompleted || ", New: "if "},
		{Name: "a rollback goes forth", File: "history.go", Run: "TestEntryBefore", Old: "last.RollbackTo > 0 && e.Number", New: "last.RollbackTo < 0 && e.Number"},
		{Name: "what would be refused is offered", File: "history.go", Run: "TestEntryBefore", Old: "if why == \"\" {", New: "if why != \"-\" {"},
		{Name: "what was superseded was completed", File: "history.go", Run: "TestHistory$",
			Old: "last.end(HistorySuperseded, now)", New: "last.end(HistoryCompleted, now)"},
		{Name: "conditions change with their reasons", File: "conditions.go", Run: "TestSameDecisionsAreTheSameStatus",
			Old: "meta.SetStatusCondition(&s.Conditions, c)", New: "meta.RemoveStatusCondition(&s.Conditions, kind)\n\t\tmeta.SetStatusCondition(&s.Conditions, c)"},
		{Name: "a drain hangs too soon", File: "conditions.go", Run: "TestHangShows", Old: "const StuckAfter = 5 *", New: "const StuckAfter = 1 *"},
		{Name: "a closed ledger hangs what is under way", File: "conditions.go", Run: "TestHangShows",
			Old: "d.Counts.InFlight == 0 && h.reason", New: "h.reason"},
		{Name: "any drain that hangs is named", File: "conditions.go", Run: "TestHangShows", Old: "age >= StuckAfter && age > longest", New: "age >= StuckAfter && longest == 0"},
		{Name: "a pause may be as long as the limit", File: "conditions.go", Run: "TestLongPauseShows",
			Old: "phase == rollout.Paused && left <= 0:", New: "phase == rollout.Paused && left < 0:"},
		{Name: "the end moves with each look", File: "status.go", Run: "TestSameDecisionsAreTheSameStatus",
			Old: "<= little", New: "< 0*little"},
		{Name: "a rollout that can't be followed has no verb", File: "policy.go", Run: "TestVerbOf",
			Old: "return rollout.Policy{UID: p.UID, Verb: p.Verb}, err", New: "return rollout.Policy{UID: p.UID}, err"},
		{Name: "a stop is not remembered", File: "status.go", Run: "TestStoppedStatus",
			Old: "errors.New(d.Message), now)\n\ts.setProgress(d.Progress)\n", New: "errors.New(d.Message), now)\n\ts.Progress = &RolloutProgress{}\n"},
		{Name: "newcomers get what somebody goes back from", File: "policy.go", Run: "TestRollbackCounts", Old: "\tcase c.rollback != nil:", New: "\tcase c.rollback != nil && len(c.errs) > 9:"},
		{Name: "suspects are in flight", File: "status.go", Run: "TestStatusNamesTheNodesInTrouble",
			Old: "case marked[n.UID], n.State", New: "case n.State"},
	})
}
