// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestServer catches a cluster in memory whose arithmetic is broken in any of these ways.
func TestMutantsOfTheArithmeticAreCaught(t *testing.T) {
	const suite = "TestTheClusterInMemoryFollowsTheServersRules"
	mutate.Sample(t, []mutate.Mutant{
		{Name: "the precondition is looked at before the budget", File: "evict.go", Run: suite,
			Old: "if err := c.spend(e, b); err != nil {",
			New: "if pod.UID != e.uid {\n\t\treturn otherUID(pod.Name, e.uid, pod.UID)\n\t}\n\tif err := c.spend(e, b); err != nil {"},
		{Name: "a stale status is believed", File: "evict.go", Run: suite,
			Old: "case b.Status.ObservedGeneration < b.Generation:", New: "case false:"},
		{Name: "nothing is spent", File: "evict.go", Run: suite, Old: "b.Status.DisruptionsAllowed--", New: ""},
		{Name: "a dry run spends", File: "evict.go", Run: suite, Old: "err != nil || e.dryRun {\n\t\treturn err", New: "err != nil {\n\t\treturn err"},
		{Name: "unready pods pass a budget that wants none", File: "evict.go", Run: suite,
			Old: "b.Status.DesiredHealthy > 0 && ", New: ""},
		{Name: "pending pods ask their budget", File: "evict.go", Run: suite, Old: "p.Status.Phase == corev1.PodPending || ", New: ""},
		{Name: "a race with an unready pod is a conflict", File: "evict.go", Run: suite,
			Old: "return stale(b.Name) // the server", New: "return err // the server"},
		{Name: "a conflict on an unprotected pod is answered at once", File: "evict.go", Run: suite,
			Old: "return apierrors.IsConflict(err), err", New: "return false, err"},
		{Name: "a stale budget says no Retry-After", File: "errors.go", Run: suite, Old: "return refused(10, ", New: "return refused(0, "},
		{Name: "percents are rounded down", File: "budget.go", Run: suite, Old: "int(expected), true)", New: "int(expected), false)"},
		{Name: "pods on their way out are healthy", File: "budget.go", Run: suite,
			Old: "leaving := pod.DeletionTimestamp != nil || found", New: "leaving := found"},
		{Name: "an unconfirmed eviction is believed for ever", File: "budget.go", Run: suite,
			Old: "deletionTimeout = 2 * time.Minute", New: "deletionTimeout = 2 * time.Hour"},
		{Name: "a missing owner counts for nothing", File: "budget.go", Run: suite,
			Old: "return 0, fmt.Errorf(\"found no controllers for pod %q\", pod.Name)", New: "_ = fmt.Sprint()\n\t\t\tcontinue"},
		{Name: "finished pods keep their grace period", File: "remove.go", Run: suite,
			Old: `pod.Spec.NodeName == "" || finished(pod)`, New: `pod.Spec.NodeName == ""`},
		{Name: "a grace period can grow", File: "remove.go", Run: suite, Old: "asked == nil || *asked >= left", New: "asked == nil"},
		{Name: "finalizers hold nothing", File: "remove.go", Run: suite,
			Old: "if grace == 0 && len(pod.Finalizers) == 0 {\n\t\tc.dropPod(pod)\n\t\treturn nil\n\t}\n\tpod = pod.DeepCopy()\n\tpod.DeletionTimestamp, pod",
			New: "if grace == 0 {\n\t\tc.dropPod(pod)\n\t\treturn nil\n\t}\n\tpod = pod.DeepCopy()\n\tpod.DeletionTimestamp, pod"},
		{Name: "a write is not guarded", File: "client.go", Run: suite, Old: "if node.ResourceVersion != old.ResourceVersion {", New: "if false {"},
		{Name: "null is a value", File: "merge.go", Run: suite, Old: "delete(out, key)", New: `out[key] = ""`},
	})
}

// TestDrainerFaultsAtOnce catches on a real API server what is broken between a Drainer and the wire.
func TestMutantsAreCaughtOnAServer(t *testing.T) {
	const suite = "TestTheDrainerSurvivesFaultsOnAServer"
	mutate.Sample(t, []mutate.Mutant{
		{Name: "an eviction names no UID", File: "../kube/client.go", Run: suite + "/the_first_eviction_meets_409:",
			Old: "options.Preconditions = &metav1.Preconditions{UID: &pod.UID}\n", New: "\n"},
		{Name: "a 500 counts as accepted", File: "../classify.go", Run: suite + "/the_first_eviction_meets_500:",
			Old: "return verdictOfInternalError(s)", New: "return VerdictAccepted"},
		{Name: "a cordon is forgotten of which nobody has heard", File: "../release.go", Run: suite + "/a_cordon_of_which_nobody_has_heard.*meets_500",
			Old: "if p.memory.unsure.Load() {", New: "if false {"},
		{Name: "a DELETE names no UID", File: "../kube/client.go", Run: suite + "/the_first_DELETE.*meets_503:",
			Old: "gracePeriodSeconds, Preconditions: &metav1.Preconditions{UID: &pod.UID},", New: "gracePeriodSeconds,"},
		{Name: "drained is what the cache says", File: "../settle.go", Run: suite + "/a_node_does_not_count",
			Old: "if err != nil || !confirmed {", New: "if _ = confirmed; err != nil {"},
	})
}

// TestDrainer and TestDrainerFaults catch a Drainer that is broken in any of these ways.
func TestMutantsOfTheDrainerAreCaught(t *testing.T) {
	const promise, faults = "TestTheDrainerKeepsItsPromiseInMemory", "TestTheDrainerSurvivesEveryFault"
	mutate.Sample(t, []mutate.Mutant{
		{Name: "the node is marked and not cordoned", File: "../mark.go", Run: promise + "/R-DR-01", Old: "yes := true", New: "yes := false"},
		{Name: "the release uncordons what was cordoned before", File: "../mark.go", Run: promise + "/a_node_that_was_cordoned",
			Old: "node.Spec.Unschedulable && !m.Unschedulable {", New: "node.Spec.Unschedulable {"},
		{Name: "two nodes at a time by default", File: "../admit.go", Run: promise + "/R-DR-04", Old: "\tn := 1\n", New: "\tn := 2\n"},
		{Name: "a cancelled set is left as it is", File: "../run.go", Run: promise + "/R-DR-17",
			Old: "if s.Request.Mode == Release {", New: "if s.Request.Mode != \"\" {"},
		{Name: "a node is known by its name", File: "../pass.go", Run: promise + "/another_UID",
			Old: `p.node == nil || (uid != "" && p.node.UID != uid)`, New: `p.node == nil || (uid != "" && uid == "-")`},
		{Name: "a pod that is gone is asked for in every pass", File: "../memory.go", Run: faults + "/a_watch_that_is_lost",
			Old: "\tdefault: // also", New: "\tcase VerdictGone, VerdictReplaced:\n\t\tdelete(m.attempts, ref.UID)\n\tdefault: // also"},
		{Name: "nobody watches for latecomers", File: "../settle.go", Run: promise + "/a_pod_that_lands", Old: "Sub(p.now); wait > 0 {", New: "Sub(p.now); wait > time.Hour {"},
		{Name: "drained is what the cache says", File: "../settle.go", Run: faults + "/a_node_does_not_count",
			Old: "if err != nil || !confirmed {", New: "if _ = confirmed; err != nil {"},
	})
}
