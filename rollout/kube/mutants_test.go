// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch stores that are broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a ledger of a later version is cut", File: "ledger.go", Run: "TestWhatIsNoLedgerObject",
			Old: "\td.DisallowUnknownFields()\n", New: ""},
		{Name: "a shadow is written over any version", File: "shadows.go", Run: "TestShadowWritesAreSwaps",
			Old: `metadata["resourceVersion"], metadata["uid"] = read.ResourceVersion, string(read.UID)`, New: ""},
		{Name: "a version that was granted is deleted", File: "shadows_delete.go", Run: "TestDelete$",
			Old: "UID: &read.UID, ResourceVersion: &read.ResourceVersion", New: "UID: &read.UID"},
		{Name: "what was granted meanwhile is removed", File: "shadows_delete.go", Run: "TestDeleteIsOvertaken",
			Old: "\t\tif read, err = s.mark(ctx, read); read == nil || err != nil {\n\t\t\treturn err\n\t\t}\n\t}\n\tif err := may(read); err != nil {",
			New: "\t\tif read, err = s.mark(ctx, read); read == nil || err != nil {\n\t\t\treturn err\n\t\t}\n\t}\n\tif err := may(read); false {"},
		{Name: "a shadow is buried alive", File: "shadows_delete.go", Run: "TestNodeIsRegisteredAnew",
			Old: "case string(node.GetUID()) == read.Spec.NodeUID:", New: "case node.GetUID() == \"\":"},
		{Name: "what is left out stays", File: "objects.go", Run: "TestShadowWritesAreSwaps",
			Old: "ok && both {", New: "ok && both && len(next) > 9 {"},
		{Name: "a shadow of no Node", File: "shadows.go", Run: "TestCreate$",
			Old: "Name: sh.Node, UID: types.UID(sh.UID)}", New: "Name: sh.Node, UID: types.UID(sh.UID + \"0\")}"},
		{Name: "what is being deleted is granted", File: "shadows.go", Run: "TestDeletedByHand",
			Old: "read.DeletionTimestamp != nil && o.Grant", New: "read.DeletionTimestamp == nil && o.Grant < 0 && o.Grant"},
		{Name: "what is there already is written again", File: "shadows.go", Run: "TestShadowWritesAreSmall",
			Old: "\tif len(change) == 0 {\n\t\treturn read, nil\n\t}\n", New: ""},
		{Name: "the agent gives orders", File: "rules.go", Run: "TestRightsOfTheSides",
			Old: `rule(v1alpha1.GroupVersion.Group, shadows, []string{"get", "list", "watch"}, names...),`,
			New: `rule(v1alpha1.GroupVersion.Group, shadows, []string{"get", "list", "watch", "patch"}, names...),`},
		{Name: "the controller reports", File: "rules.go", Run: "TestRightsOfTheSides",
			Old: `rule(group, v1alpha1.NodeShadowsResource.Resource, []string`, New: `rule(group, "*", []string`},
		{Name: "the version before is stored over", File: "ledger.go", Run: "TestLedgerStore$/stale-store",
			Old: "u.SetResourceVersion(version)", New: "u.SetResourceVersion(\"\")"},
		{Name: "shadows of other domains are seen", File: "shadows.go", Run: "TestShadowsOfOneDomain",
			Old: `return s.domain == "" || sh.Spec.Domain == s.domain`, New: "return true"},
		{Name: "a shadow of no domain", File: "shadows.go", Run: "TestShadowsOfOneDomain", Old: "NodeUID: sh.UID, Domain: s.domain}", New: "NodeUID: sh.UID}"},
		{Name: "a late watch undoes what was written", File: "agent.go", Run: "TestAgentReadsWhatItSees",
			Old: "a.asked && behind(a.last, sh)", New: "a.asked"},
		{Name: "after a conflict the same is read again", File: "agent.go", Run: "TestAgentReadsWhatItSees",
			Old: "if err != nil { // it may", New: "if false { // it may"},
		{Name: "a ledger that is gone is seen", File: "ledger_watch.go", Run: "TestLedgerIsSeen",
			Old: "DeleteFunc: func(any) {\n\t\t\ts.forget()", New: "DeleteFunc: func(any) {"},
		{Name: "a ledger that nobody watches is seen", File: "ledger_watch.go", Run: "TestLedgerIsSeen",
			Old: "|| watch == nil || !watch.informer.HasSynced()", New: "|| watch != nil && !watch.informer.HasSynced()"},
		{Name: "a domain has all nodes", File: "fleet_domain.go", Run: "TestFleetOfADomain", Old: "|| f.selector.Matches(labels.Set(n.Labels)) {", New: "|| f.selector != nil || len(labels.Set{}) == 0 {"},
		{Name: "who has lost its label is forgotten", File: "fleet_domain.go", Run: "TestFleetOfADomain", Old: "case string(n.UID) == kept[name]:", New: "case n.UID == \"\":"},
		{Name: "a node of the same name is taken for the old one", File: "fleet_domain.go", Run: "TestFleetOfADomain",
			Old: "known && uid == string(n.UID) ||", New: "known && uid != \"\" ||"},
		{Name: "the cache of a domain watches every node", File: "fleet_domain.go", Run: "TestFleetOfADomain", Old: "o.LabelSelector = of.String()", New: "_ = of.String()"},
		{Name: "pods that are not ready are well", File: "health.go", Run: "TestHealthBefore", Old: "if len(sick) > 0 {", New: "if len(sick) < 0 {"},
		{Name: "a condition that was bad before is worse", File: "health.go", Run: "TestHealthAfter", Old: "case !slices.Contains(then, string(c.Type)):", New: "default:"},
		{Name: "no condition is worse than before", File: "health.go", Run: "TestHealthAfter", Old: "case !slices.Contains(then, string(c.Type)):", New: "case len(then) > 9:"},
		{Name: "work has to come back to its node", File: "health_stores.go", Run: "TestHealthAfter",
			Old: "		if pod.DeletionTimestamp != nil || isFinished(pod) {", New: "		if pod.DeletionTimestamp != nil || isFinished(pod) || strings.HasSuffix(pod.Spec.NodeName, \"-b\") {"},
		{Name: "work need not come back", File: "health_baseline.go", Run: "TestHealthAfter", Old: "ready < want {", New: "ready < 0 {"},
		{Name: "what people take away has to come back", File: "health_baseline.go", Run: "TestHealthOfWork",
			Old: "if want = min(want, was.ready); ready", New: "if want = was.ready; ready"},
		{Name: "DaemonSets need not come back", File: "health_baseline.go", Run: "TestHealthAfter", Old: "	for _, digest := range then {\n		if here", New: "	for _, digest := range then[:0] {\n		if here"},
		{Name: "DaemonSets select every node", File: "health_baseline.go", Run: "TestHealthOfWork", Old: "!there || is != value", New: "there && false && is != value"},
		{Name: "each version of a Deployment is a workload", File: "health_stores.go", Run: "TestHealthOfWork", Old: "owner.Kind == \"ReplicaSet\" && hash", New: "owner.Kind == \"\" && hash"},
		{Name: "a baseline is as long as it likes", File: "health_baseline.go", Run: "TestBaseline", Old: "all[:min(most, len(all))]", New: "all[:max(0*most, len(all))]"},
		{Name: "what is finished has to come back", File: "health_stores.go", Run: "TestBaseline",
			Old: "return pod.DeletionTimestamp == nil && !isFinished(pod) && isReady(pod)", New: "return isReady(pod)"},
	})
}

// The same for what controllers see of Rollouts, and for what goes one at a time.
func TestStandingMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "what can't be read is written over", File: "rollouts.go", Run: "TestVerbIsSeen", Old: "seen.Policy.Verb = rollout.Verb{} //", New: "_ = rollout.Verb{} //"},
		{Name: "what goes on is stalled", File: "rollouts.go", Run: "TestStalledIsSeen", Old: "c != nil && c.Status == metav1.ConditionTrue", New: "c != nil"},
		{Name: "the control plane goes at once", File: "../caps.go", Run: "TestControlPlane", Old: "protocol.Cap{Key: serialKey, Max: 1,", New: "protocol.Cap{Key: serialKey, Max: 50,"},
		{Name: "nobody is asked before", File: "../nodeagent/do.go", Run: "TestControlPlane", Old: "a.o.Updater.(Preflighter); ok {", New: "a.o.Updater.(Preflighter); ok && a.o.CheckTimeout < 0 {"},
		{Name: "an overlap does not show", File: "../v1alpha1/conditions.go", Run: "TestOverlapShows", Old: "f.Check == rollout.CheckOverlap", New: "f.Check == \"\""},
	})
}
