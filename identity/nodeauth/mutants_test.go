// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestBrokenPoliciesAreCaught shows that the suite would notice a policy that lacks a requirement. Each starts a real server.
func TestBrokenPoliciesAreCaught(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "nothing has a fault", File: "policy.go", Old: "faultyExpression(o)}", New: "\"false\"}", Run: "^TestOnlyTokensOfPodsAreTaken$"},
		{Name: "the name isn't compared", File: "expressions.go", Old: `each("%[1]s.?metadata.?name.orValue('') == " + name),`, New: `"true",`, Run: "^TestAgentWritesItsOwnNodeOnly$/Lease"},
		{Name: "the prefix is forgotten", File: "expressions.go", Old: `name = quote(r.Prefix) + " + " + name`, New: `name += ""`, Run: "^TestAgentWritesItsOwnNodeOnly$/Lease"},
		{Name: "deletions aren't guarded", File: "policy.go", Old: "admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,", New: "admissionregistrationv1.Create, admissionregistrationv1.Update,", Run: "^TestAgentWritesItsOwnNodeOnly$/Shadow_v1/delete"},
		{Name: "creations aren't guarded", File: "policy.go", Old: "admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,", New: "admissionregistrationv1.Update, admissionregistrationv1.Delete,", Run: "^TestOwnerMustBeTheOwnNode$"},
		{Name: "subresources aren't guarded", File: "policy.go", Old: `[]string{r.Resource, r.Resource + "/*"}`, New: "[]string{r.Resource}", Run: "^TestAgentWritesItsOwnNodeOnly$/Shadow_v1/.*status"},
		{Name: "a token of a Node will do", File: "expressions.go", Old: `pod := "variables.nodeUID != '' && " + values(podNameClaim) + ".size() == 1"`, New: `pod := "variables.nodeUID != ''"`, Run: "^TestOnlyTokensOfPodsAreTaken$"},
		{Name: "an unbound token will do", File: "expressions.go", Old: `requirement{"variables.node != '' && " + pod,`, New: `requirement{"variables.node == '' || " + pod,`, Run: "^TestOnlyTokensOfPodsAreTaken$"},
		{Name: "the first of several will do", File: "expressions.go", Old: `".size() == 1 ? " + values`, New: `".size() > 0 ? " + values`, Run: "^TestOneOfEachClaimIsWanted$"},
		{Name: "the first of several is plain", File: "expressions.go", Old: "size(%[2]s[%[1]s]) == 1", New: "size(%[2]s[%[1]s]) > 0", Run: "^TestOneOfEachClaimIsWanted$"},
		{Name: "several pods will do", File: "expressions.go", Old: `values(podNameClaim) + ".size() == 1"`, New: `values(podNameClaim) + ".size() > 0"`, Run: "^TestOneOfEachClaimIsWanted$"},
		{Name: "a broken expression lets through", File: "policy.go", Old: "new(admissionregistrationv1.Fail)", New: "new(admissionregistrationv1.Ignore)", Run: "^TestBrokenExpressionDenies$"},
		{Name: "the owner isn't compared", File: "expressions.go", Old: "if !r.NotOwned {", New: "if false {", Run: "^TestRightsEndWithTheNode$"},
		{Name: "one owner among others will do", File: "expressions.go", Old: `owner + ") == [" + want + "]"),`, New: `owner + ").exists(u, u == " + want + ")"),`, Run: "^TestOwnerMustBeTheOwnNode$"},
		{Name: "only the object after the write is looked at", File: "expressions.go", Old: `&& (oldObject == null || " + fmt.Sprintf(says, "oldObject") + ")"`, New: `"`, Run: "^TestOwnerMustBeTheOwnNode$"},
		{Name: "only the object before the write is looked at", File: "expressions.go", Old: `"(object == null || " + fmt.Sprintf(says, "object") + ") && `, New: `"`, Run: "^TestOwnerMustBeTheOwnNode$"},
		{Name: "owners of another group count", File: "expressions.go", Old: ` && r.?apiVersion.orValue('') == 'v1'`, New: "", Run: "^TestOwnerMustBeTheOwnNode$"},
		{Name: "the spec may be written", File: "expressions.go", Old: `return requirement{strings.Join(ways, " || "), mayNot(o)}`, New: `return requirement{"true", mayNot(o)}`, Run: "^TestAgentWritesNoDesiredState$"},
		{Name: "the Node's UID isn't compared", File: "node.go", Old: `"variables.oldMetadata.?uid.orValue('') == variables.nodeUID",`, New: `"true",`, Run: "^TestRightsEndWithTheNode$"},
		{Name: "the status isn't compared", File: "node.go", Old: `		unchanged("variables.oldStatus", "variables.newStatus", "conditions"),` + "\n", New: "", Run: "^TestNodeStatusIsClosed$"},
		{Name: "fields that are new aren't seen", File: "node.go", Old: " && (%[4]s || %[2]s.all(k, k in %[3]s || k in %[1]s))", New: "", Run: "^TestFutureFieldsAreClosed$"},
		{Name: "as many fields are the same fields", File: "node.go", Old: `"has(%[1]s.%[3]s) == has(%[2]s.%[3]s)"`, New: `"has(%[1]s.%[3]s) == has(%[1]s.%[3]s)"`, Run: "^TestFutureFieldsAreClosed$"},
		{Name: "values aren't compared", File: "node.go", Old: "%[1]s[?k] == %[2]s[?k]", New: "k in %[2]s", Run: "^TestFutureFieldsAreClosed$"},
		{Name: "the metadata isn't compared", File: "node.go", Old: `		unchanged("variables.oldMetadata", "variables.newMetadata", "managedFields", "resourceVersion"),` + "\n", New: "", Run: "^TestNodeMetadataIsClosed$"},
		{Name: "others' conditions aren't compared", File: "node.go", Old: `others("variables.oldStatus") + " == "`, New: `others("variables.newStatus") + " == "`, Run: "^TestNodeConditionsAreThoseNamed$"},
		{Name: "Nodes are guarded only where they are written", File: "policy.go", Old: `append(slices.Clone(o.Resources), Resource{Resource: "nodes"})`, New: "slices.Clone(o.Resources)", Run: "^TestNoNodeWriteByDefault$"},
		{Name: "kubelets are stopped", File: "expressions.go", Old: ` && "+nameExpression+" in "+list(guarded))`, New: `")`, Run: "^TestNodeUsersAreGuarded$"},
		{Name: "node users write for all nodes", File: "expressions.go", Old: "rs := []requirement{mayWrite(o, r), hasName(r)}", New: "rs := []requirement{mayWrite(o, r)}\n\t\t\tif !o.NodeUsers {\n\t\t\t\trs = append(rs, hasName(r))\n\t\t\t}", Run: "^TestNodeUserWritesItsOwnNodeOnly$"},
		{Name: "Leases everywhere wait for the policy", File: "policy.go", Old: "len(namespaces) > 0 && o.selectable()", New: "false", Run: "^TestOtherNamespacesAreLeftAlone$/selector"},
		{Name: "Leases everywhere are guarded", File: "policy.go", Old: "len(confined) > 0 && !o.selectable()", New: "false", Run: "^TestOtherNamespacesAreLeftAlone$/condition"},
		{Name: "a forgotten namespace is exempt by the selector", File: "policy.go", Old: `return r.Namespace == "" && !r.isNode()`, New: `return false`, Run: "^TestForgottenNamespaceOpensNothing$/agent"},
		{Name: "a forgotten namespace is exempt by the place", File: "policy.go", Old: "if !slices.ContainsFunc(o.Resources, everywhere) {", New: "if everywhere != nil {", Run: "^TestForgottenNamespaceOpensNothing$/agent"},
		{Name: "a forgotten namespace is exempt for node users", File: "expressions.go", Old: ` && "+nameExpression+" in "+list(guarded))`, New: ` && "+kindExpression+" in "+list(guarded))`, Run: "^TestForgottenNamespaceOpensNothing$/node_user"},
		{Name: "the policy is for another account", File: "expressions.go", Old: "quote(serviceAccountUser(o.ServiceAccount))", New: `quote(serviceAccountUser(o.ServiceAccount)+"x")`, Run: "^TestProbeOfANarrowAgent$"},
		{Name: "agents list Nodes", File: "objects.go", Old: `rule("", "nodes", "get")`, New: `rule("", "nodes", "get", "list")`, Run: "^TestRightsAreTheNamedOnes$"},
		{Name: "heartbeats are ordinary", File: "objects.go", Old: `"node-high"`, New: `"workload-low"`, Run: "^TestHeartbeatsHaveTheirOwnLevel$"},
		{Name: "a flow rule without verbs", File: "objects.go", Old: " && len(verbs) > 0 {", New: " && len(verbs) >= 0 {", Run: "^TestServerTakesLeasesWithoutHeartbeats$"},
		{Name: "the roles come first", File: "objects.go", Old: "		objects = append(objects, g.role())", New: "		objects = append([]runtime.Object{g.role()}, objects...)", Run: "^TestObjectsComeInOrder$"},
		{Name: "any node may be impersonated", File: "objects.go", Old: `"impersonate:associated-node")`, New: `"impersonate:associated-node", "impersonate:arbitrary-node")`, Run: "^TestRightsAreTheNamedOnes$"},
		{Name: "the probe writes", File: "probe.go", Old: "leases.Create(ctx, lease, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})", New: "leases.Create(ctx, lease, metav1.CreateOptions{})", Run: "^TestProbeLeavesNothingBehind$"},
	})
}

// TestMutantsAreCaught shows that the suite would notice what is broken in the parts that need no server.
func TestMutantsAreCaught(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a denial is 422", File: "policy.go", Old: "all[i].Reason = new(metav1.StatusReasonForbidden)", New: "all[i].Reason = nil", Run: "TestGuardDenies"},
		{Name: "errors are let through", File: "policy.go", Old: "new(admissionregistrationv1.Fail)", New: "new(admissionregistrationv1.Ignore)", Run: "TestGuardDenies"},
		{Name: "nothing is denied", File: "policy.go", Old: "admissionregistrationv1.Deny, ", New: "", Run: "TestGuardDenies"},
		{Name: "unauthenticated", File: "facts.go", Old: `!s.Authenticated || s.Error != ""`, New: "false", Run: "TestVerifierWants"},
		{Name: "any audience", File: "facts.go", Old: "!slices.Contains(s.Audiences, audience)", New: "len(s.Audiences) > 0 && !slices.Contains(s.Audiences, audience)", Run: "TestVerifierWants"},
		{Name: "any account", File: "facts.go", Old: "s.User.Username != user", New: "false", Run: "TestVerifierWants"},
		{Name: "one of two", File: "facts.go", Old: "if len(values) != 1 {", New: "if len(values) == 0 {", Run: "TestVerifierWants"},
		{Name: "any node", File: "facts.go", Old: `one(nodes) != node ||`, New: "", Run: "TestVerifierWants"},
		{Name: "another pod", File: "facts.go", Old: "pod.UID != c.PodUID", New: "false", Run: "TestVerifierWants"},
		{Name: "a pod elsewhere", File: "facts.go", Old: "pod.Namespace != c.Pod.Namespace || pod.Name != c.Pod.Name", New: "false", Run: "TestVerifierWants"},
		{Name: "a deleted pod", File: "facts.go", Old: "pod.DeletionTimestamp != nil || ended", New: "ended", Run: "TestVerifierWants"},
		{Name: "a pod at its end", File: "facts.go", Old: "pod.DeletionTimestamp != nil || ended", New: "pod.DeletionTimestamp != nil || ended && false", Run: "TestVerifierWants"},
		{Name: "a pod of another account", File: "facts.go", Old: "pod.Spec.ServiceAccountName != account.Name", New: "false", Run: "TestVerifierWants"},
		{Name: "a pod on another node", File: "facts.go", Old: "pod.Spec.NodeName != c.Node", New: "false", Run: "TestVerifierWants"},
		{Name: "another Node", File: "facts.go", Old: "node.Name != c.Node || node.UID != c.NodeUID", New: "node.Name != c.Node", Run: "TestVerifierWants"},
		{Name: "no answer is a refusal", File: "verifier.go", Old: "if apierrors.IsNotFound(err) {", New: "if apierrors.IsNotFound(err) || err != nil {", Run: "TestVerifierTellsDoubt"},
		{Name: "the token is told", File: "verifier.go", Old: "node, without(token, err))", New: "node, err)", Run: "TestTokensStaySecret"},
		{Name: "no deadline", File: "verifier.go", Old: "context.WithTimeout(ctx, cmp.Or(timeout, defaultTimeout))", New: "context.WithTimeout(ctx, 2*cmp.Or(timeout, defaultTimeout))", Run: "TestVerifierTellsWho"},
		{Name: "every 403 is the policy's", File: "probe.go", Old: `strings.HasPrefix(cause.Message, "ValidatingAdmissionPolicy '"+policy+"' ") && `, New: "", Run: "TestProbeKnows"},
		{Name: "whoever speaks of the policy is it", File: "probe.go", Old: "strings.HasPrefix(cause", New: "strings.Contains(cause", Run: "TestProbeKnows"},
		{Name: "a policy whose name begins so", File: "probe.go", Old: `"ValidatingAdmissionPolicy '"+policy+"' "`, New: `"ValidatingAdmissionPolicy '"+policy`, Run: "TestProbeKnows"},
		{Name: "accepted is fine", File: "probe.go", Old: "if answer == nil {", New: "if false {", Run: "TestProbeKnows"},
		{Name: "a taken name hides it", File: "probe.go", Old: "if apierrors.IsAlreadyExists(answer) {", New: "if false {", Run: "TestProbeKnows"},
		{Name: "the probe goes on unguarded", File: "probe.go", Old: "\t\t\tstop(err)\n\t\t\treturn errors.Join(err, outcome(ended))\n", New: "", Run: "TestProbeRuns"},
		{Name: "less than nothing is a time", File: "probe.go", Old: "max(p.Every, 0)", New: "p.Every", Run: "TestProbeRuns"},
		{Name: "a failure waits for an hour", File: "probe.go", Old: "wait, retry = min(wait, retry), min(2*retry, time.Minute)", New: "retry = min(2*retry, time.Minute)", Run: "TestProbeRuns"},
		{Name: "failures are repeated at once", File: "probe.go", Old: "min(2*retry, time.Minute)", New: "min(retry, time.Minute)", Run: "TestWorkWaitsForTheGuard"},
		{Name: "work begins unasked", File: "probe.go", Old: "case err != nil:\n\t\t\twait, retry", New: "case err != nil && ended != nil:\n\t\t\twait, retry", Run: "TestWorkWaitsForTheGuard"},
		{Name: "work begins twice", File: "probe.go", Old: "if ended == nil {\n\t\t\t\tended", New: "if true {\n\t\t\t\tended", Run: "TestWorkWaitsForTheGuard"},
		{Name: "work goes on unguarded", File: "probe.go", Old: "\t\t\tstop(err)\n", New: "", Run: "TestWorkEndsWithTheGuard"},
		{Name: "work is left behind", File: "probe.go", Old: "return errors.Join(err, outcome(ended))", New: "return err", Run: "TestWorkEndsWithTheGuard"},
		{Name: "the end is an error", File: "probe.go", Old: "!errors.Is(err, context.Canceled) && ", New: "", Run: "TestWorkEndsWithTheGuard"},
		{Name: "the end of work is not seen", File: "probe.go", Old: "return true, err", New: "return false, err", Run: "TestWorkEndsByItself"},
		{Name: "a token of a year", File: "token.go", Old: "LongestToken  = time.Hour", New: "LongestToken  = 2 * time.Hour", Run: "TestTokenVolume|TestPodsAreChecked"},
		{Name: "automounted", File: "token.go", Old: "spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken", New: "false", Run: "TestPodsAreChecked"},
		{Name: "any audience of a pod", File: "token.go", Old: "if !slices.Contains(have, a) {", New: "if len(have) == 0 && !slices.Contains(have, a) {", Run: "TestPods(AreChecked|HaveAToken)"},
		{Name: "the API server's token is optional", File: "token.go", Old: `audiences = []string{""}`, New: "audiences = nil", Run: "TestPodsAreChecked"},
		{Name: "another account's pods", File: "token.go", Old: "got != o.ServiceAccount {", New: "got.Name == \"\" {", Run: "TestPodsAreChecked"},
		{Name: "the kubelet's conditions", File: "options.go", Old: "if slices.Contains(kubelets, c) {", New: "if slices.Contains(kubelets, c) && false {", Run: "TestOptionsSay"},
		{Name: "Namespaces are guarded", File: "options.go", Old: `r.Resource == "namespaces"`, New: `r.Resource == "n'"`, Run: "TestOptionsSay"},
		{Name: "quotes in a prefix", File: "options.go", Old: `len(validation.IsDNS1123Subdomain(r.Prefix+"n")) > 0`, New: "false", Run: "TestOptionsSay|FuzzOptions"},
	})
}
