// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "the policy does not compare the name of the object",
			Func:    "hasName",
			Replace: `each("%[1]s.?metadata.?name.orValue('') == " + name)`,
			With:    `"true"`,
			Run:     "^TestAgentWritesItsOwnNodeOnly$/Lease",
		},
		{
			Why:  "deletions are not guarded by the policy",
			Func: "rules",
			Replace: `[]admissionregistrationv1.OperationType{
				admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
			}`,
			With: `[]admissionregistrationv1.OperationType{
				admissionregistrationv1.Create, admissionregistrationv1.Update, 
			}`,
			Run: "^TestAgentWritesItsOwnNodeOnly$/Shadow_v1/delete",
		},
		{
			Why:     "an agent may write its spec",
			Func:    "mayWrite",
			Replace: `strings.Join(ways, " || ")`,
			With:    `"true"`,
			Run:     "^TestAgentWritesNoDesiredState$",
		},
		{
			Why:     "the policy does not compare the UID of the Node",
			Func:    "isNode",
			Replace: `"variables.oldMetadata.?uid.orValue('') == variables.nodeUID"`,
			With:    `"true"`,
			Run:     "^TestRightsEndWithTheNode$",
		},
		{
			Why:     "the policy denies nothing",
			Func:    "binding",
			Replace: `[]admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny, admissionregistrationv1.Audit}`,
			With:    "[]admissionregistrationv1.ValidationAction{ admissionregistrationv1.Audit}",
			Run:     "TestGuardDenies",
		},
		{
			Why:     "an unauthenticated token is verified",
			Func:    "claimed",
			Replace: `!s.Authenticated || s.Error != ""`,
			With:    "false",
			Run:     "TestVerifierWants",
		},
		{
			Why:     "a token for any audience is verified",
			Func:    "claimed",
			Replace: "!slices.Contains(s.Audiences, audience)",
			With:    "len(s.Audiences) > 0 && !slices.Contains(s.Audiences, audience)",
			Run:     "TestVerifierWants",
		},
		{
			Why:     "the node claim of a token is not compared",
			Func:    "claimed",
			Replace: `one(nodes) != node || one(nodeUIDs) == ""`,
			With:    `one(nodeUIDs) == ""`,
			Run:     "TestVerifierWants",
		},
		{
			Why:     "a token outlives its Node",
			Func:    "checkNode",
			Replace: "node.Name != c.Node || node.UID != c.NodeUID",
			With:    "node.Name != c.Node",
			Run:     "TestVerifierWants",
		},
		{
			Why:     "an error contains the token",
			Func:    "(*Verifier).Verify",
			Replace: "without(token, err)",
			With:    "err",
			Run:     "TestTokensStaySecret",
		},
		{
			Why:     "a token may live for a year",
			Func:    "LongestToken",
			Replace: "time.Hour",
			With:    "365 * 24 * time.Hour",
			Run:     "TestTokenVolume|TestPodsAreChecked",
		},
	})
}
