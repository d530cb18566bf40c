// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"os"
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch providers that are broken in any of these ways.
func TestMutants(t *testing.T) {
	if os.Getenv("BELAY_MUTANTS") == "" {
		t.Skip("the tests of real processes take half a minute for each mutant: make mutants, or BELAY_MUTANTS=all")
	}
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a claim is committed without a look at the others", File: "create.go", Run: "TestTwoReservationsBecomeOneClaim/0-first",
			Old: "found := claims(append(others, mine), token)", New: "found := claims([]sight{mine}, token)"},
		{Name: "what stop says is believed", File: "settle.go", Run: "TestSettle|TestStopNeedsProof", Old: "\t\tif a.held {", New: "\t\tif a.held && a.data {"},
		{Name: "what can't be cleaned is free", File: "settle.go", Run: "TestSettle",
			Old: "r.Phase, r.Step = dirty, step{}", New: "r.Phase, r.Step = free, step{}"},
		{Name: "who does not answer has nothing", File: "pool.go", Run: "TestUnansweredIsNotNotFound",
			Old: "return sight{}, all, unanswered(all)", New: "return sight{}, all, nil"},
		{Name: "a token without a claim is not used up", File: "delete.go", Run: "TestConformance$/DeleteUsesUpUnknown",
			Old: "len(all) == 0 || spent(all)", New: "len(all) >= 0"},
		{Name: "data that nobody claims is taken", File: "create.go", Run: "TestDataWithoutClaimIsDirty",
			Old: "if s.rec != nil || s.data {", New: "if s.rec != nil {"},
		{Name: "any host will do", File: "client.go", Run: "TestArguments", Old: "StrictHostKeyChecking=yes", New: "StrictHostKeyChecking=no"},
		{Name: "the claim of another host is believed", File: "record.go", Run: "TestParseRefuses|TestRenamedHostIsRefused",
			Old: "case r.Host != host:", New: "case r.Host != host && host == \"\":"},
		{Name: "an answer that is cut is whole", File: "answer.go", Run: "TestParseAnswer",
			Old: "\tif !bytes.Contains(out, []byte(\"\\nbelay \"+nonce+\" end\\n\")) {", New: "\tif len(out) == 0 {"},
		{Name: "an answer to another request is taken", File: "answer.go", Run: "TestParseAnswer",
			Old: `case word == "belay" && rest == nonce+" begin" && !begun:`, New: `case word == "belay" && !begun:`},
		{Name: "a token has two digests", File: "create.go", Run: "TestConformance$/OtherDigestIsConflict",
			Old: "case !takes(r.Digest):", New: "case !takes(r.Digest) && r.Token == \"\":"},
		{Name: "a token that was adopted from is not used up", File: "create.go", Run: "TestConformance$/AdoptUsesUpTheOldToken",
			Old: "\t\tw.spend = next.Token\n", New: ""},
		{Name: "Get leaves what was cut off", File: "ssh.go", Run: "TestBootstrapIsRunAgain",
			Old: "s.rec.Phase == starting && v == cut:", New: "s.rec.Phase == starting && v == cut && token == \"\":"},
		{Name: "other clusters may delete", File: "delete.go", Run: "TestConformance$/DeleteInOtherClusterIsNotFound",
			Old: "if owner.Cluster != r.Cluster {", New: "if owner.Cluster == \"\" {"},
		{Name: "an unknown mode destroys", File: "delete.go", Run: "TestConformance$/RetainIsTheDefault",
			Old: "if r.Mode == provider.Destroy {", New: "if r.Mode != provider.Retain {"},
		{Name: "a refused login is an outage", File: "client.go", Run: "TestRefusal",
			Old: `{"Permission denied", provider.Unauthorized}`, New: `{"Permission denied", provider.Unavailable}`},
		{Name: "a host swaps whatever is there", File: "agent.sh", Run: "TestManyCallersOneBootstrap",
			Old: `[ "$b_now" = "$b_expect" ] || { b_say conflict; return 0; }`, New: ":"},
		{Name: "the wipe follows links", File: "request.go", Run: "TestWipeStaysInTheData",
			Old: `find "$BELAY_DATA" -xdev -mindepth 1 -delete`, New: `find -L "$BELAY_DATA" -xdev -mindepth 1 -delete`},
		{Name: "secrets stay on the host", File: "run.sh", Run: "TestBootstrapIsRunAgain", Old: "rm -rf join stdin", New: ":"},
		{Name: "tokens that were used up are forgotten", File: "agent.sh", Run: "TestUsedTokensAreBounded",
			Old: `b_used "$b_spend" && return 0`, New: "return 0"},
		{Name: "a step that runs is begun again", File: "agent.sh", Run: "TestHostDiesAtEachPoint/create",
			Old: "	if flock -n -x 7; then", New: "	if :; then"},
		{Name: "files of others are readable", File: "agent.sh", Run: "TestSecretsAreNoArguments", Old: "	umask 077", New: "	umask 022"},
	})
}
