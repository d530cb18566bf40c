// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// R-MA-05, R-MA-06, R-MA-18, R-MA-29 and R-MA-30: each way to break what proves an update, ends a wait, frees a slot and opens a gate is noticed.
func TestMutantsOfProofs(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a report from before an update proves it", File: "../verify.go", Run: "TestUpdateNeeds|TestUpdateWithout",
			Old: "case u.Heard == n.report():", New: "case false:"},
		{Name: "a cache is believed that nothing was reported", File: "../verify.go", Run: "TestUpdateNeeds",
			Old: "case u.Heard != n.report() && !p.NodesLive:", New: "case false:"},
		{Name: "a cache that is behind proves an update", File: "../verify.go", Run: "TestReportOfACacheThatIsBehind",
			Old: "case u.Heard != n.report() && !p.NodesLive:", New: "case u.Heard == \"\" && !p.NodesLive:"},
		{Name: "what was broken before is blamed on the change", File: "act.go", Run: "TestBrokenBeforeTheUpdateIsNotBlamed",
			Old: "s.Failure.Since.Before(s.Update.Since)", New: "false"},
		{Name: "one thing that goes on makes another one forgotten", File: "ask.go", Run: "TestPollsOfSeveral",
			Old: "p.mem.polls = append(others, ", New: "p.mem.polls = append(others[:0], "},
		{Name: "a broken instance is not updated", File: "../decide.go", Run: "TestBroken",
			Old: "return i.State == provider.Broken && p.changes() }", New: "return false }"},
		{Name: "an update of what does not run is over", File: "../verify.go", Run: "TestBroken",
			Old: "i.State != provider.Running && p.Can.Get {", New: "i.State == provider.Stopped {"},
		{Name: "what was sent and is edited back is left half-way", File: "../update.go", Run: "TestBroken",
			Old: "if u.Sent && s.Update.Digest != u.Digest {", New: "if false {"},
		{Name: "what a provider says of the next call is not heard", File: "ask.go", Run: "TestProviderSays",
			Old: "after > 0 && o.Err == nil && p.asked {", New: "after < 0 {"},
		{Name: "who wants something else waits for the last", File: "reconcile.go", Run: "TestAnotherDesire",
			Old: "if p.mem.pollOf != p.tried() {", New: "if false {"},
		{Name: "a slot is given back by a cache", File: "free.go", Run: "TestStaleCache",
			Old: "if same, err = p.refresh(ctx); errors.Is", New: "if same, err = true, nil; errors.Is"},
		{Name: "a late return takes the next slot", File: "../update.go", Run: "TestLateFree",
			Old: "Action{Kind: FreeSlot, Attempt: u.Loan}", New: "Action{Kind: FreeSlot}"},
		{Name: "what can't be looked for is destroyed", File: "../release.go", Run: "TestGatesWhile",
			Old: "p.unreachable() && r.Mode == provider.Retain}", New: "p.unreachable() && r.Mode != provider.Mode(\"\")}"},
		{Name: "a short outage opens the gates", File: "../release.go", Run: "TestGatesWhile",
			Old: "!p.NodesKnown && p.unreachable() && r.Mode", New: "!p.NodesKnown && r.Mode"},
		{Name: "what nobody has looked for is not written down", File: "act.go", Run: "TestGatesWhile",
			Old: "o.Unseen = true", New: "o.Unseen = false"},
		{Name: "another boot is no proof", File: "../verify.go", Run: "TestUpdateNeeds",
			Old: "u.Before != \"\" && n.host() != u.Before:", New: "u.Before == \"x\":"},
	})
}
