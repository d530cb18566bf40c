// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch stores, nodes and loops that are broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "what left a status stays", File: "status.go", Run: "TestStatusKeeps", Old: "patch[k] = nil", New: "_ = patch"},
		{Name: "a status is written over any version", File: "status.go", Run: "TestStatusKeeps",
			Old: `"metadata": map[string]any{"uid": uid, "resourceVersion": version},`, New: `"metadata": map[string]any{"uid": uid, "x": version},`},
		{Name: "what a newer version has in an object is dropped", File: "put.go", Run: "TestWritesKeep", Old: "next := maps.Clone(is)", New: "next := maps.Clone(after)"},
		{Name: "what a newer version has in an item of a list is dropped", File: "put.go", Run: "TestItemsKeep", Old: "m != nil && stays != nil {", New: "m != nil && stays == nil {"},
		{Name: "one of two keys is enough", File: "put.go", Run: "TestItemsKeep", Old: `return []string{"key", "effect"}`, New: `return []string{"key"}`},
		{Name: "an item is any of its name", File: "put.go", Run: "TestItemsKeep", Old: `if key == "" || found[key] != nil {`, New: `if false {`},
		{Name: "what was seen of a server that does not answer counts", File: "nodes.go", Run: "TestTwoServers", Old: "s.failing = err", New: "s.failing = nil"},
		{Name: "a drain wakes nobody", File: "run.go", Run: "TestDrainWakes", Old: "if l.Drains != nil {", New: "if false {"},
		{Name: "what can't be understood says nothing", File: "refuse.go", Run: "TestInvalidEdits", Old: "if err != nil && ctx.Err() == nil {", New: "if false {"},
		{Name: "a Node that was registered anew counts as removed", File: "nodes.go", Run: "TestNodesThatNoWatch",
			Old: "case apierrors.IsConflict(err):", New: "case apierrors.IsConflict(err) && ref.Name == \"\":"},
		{Name: "a Node is removed whatever its UID is", File: "nodes.go", Run: "TestNodesThatNoWatch",
			Old: "metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}", New: "metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: map[bool]*types.UID{true: &uid}[false]}}"},
		{Name: "any Node is a machine's", File: "nodes_live.go", Run: "TestNodesThatNoWatch",
			Old: "slices.Clone(nodes[token])", New: "slices.Clone(func() (all []machine.Node) {\nfor _, n := range nodes {\nall = append(all, n...)\n}\nreturn all\n}())"},
		{Name: "a list that was begun before is shared", File: "nodes_live.go", Run: "TestLiveLists", Old: "l.running, l.next = mine, nil", New: "l.running = mine"},
		{Name: "the taint of a new Node stays", File: "nodes_start.go", Run: "TestLifeOnTheServer", Old: "return t.Key == UninitializedTaint || dropped", New: "return dropped"},
		{Name: "a taint that left the spec stays", File: "nodes_start.go", Run: "TestSettings", Old: "return t.Key == UninitializedTaint || dropped || replaced", New: "return t.Key == UninitializedTaint || dropped && replaced || replaced"},
		{Name: "a config source that left the spec stays", File: "configs.go", Run: "TestSettings", Old: "if len(source) > 0 {", New: "if len(source) == 0 {\n\t\treturn nil\n\t}\n\tif len(source) > 0 {"},
		{Name: "a Node that is gone is made by its mark", File: "nodes_start.go", Run: "TestMarkOnTheServer", Old: "applycorev1.Node(ref.Name).WithUID(uidOf(ref))", New: "applycorev1.Node(ref.Name)"},
		{Name: "the mark of somebody else is taken", File: "nodes_start.go", Run: "TestMarkOnTheServer",
			Old: "Apply(ctx, o, metav1.ApplyOptions{FieldManager: FieldManager})", New: "Apply(ctx, o, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})"},
		{Name: "a watch that can't begin is told of at the end", File: "run.go", Run: "TestRunReturns", Old: "defer stop() // without a watch", New: "// without a watch"},
		{Name: "a right is missing", File: "rules.go", Run: "TestRightsAre", Old: `"list", "watch", "patch", "delete"),
		rule(v1alpha1.GroupVersion.Group, "nodeconfigs"`, New: `"list", "watch", "patch"),
		rule(v1alpha1.GroupVersion.Group, "nodeconfigs"`},
		{Name: "a cache is asked for what checks have on record", File: "groups.go", Run: "TestLiveReadHas",
			Old: "g.checks.list(ctx, g.client, namespace, live,", New: "g.checks.list(ctx, g.client, namespace, false,"},
		{Name: "a right too many", File: "rules.go", Run: "TestRightsAre", Old: `rule("", "secrets", "get"),`, New: `rule("", "secrets", "get", "update"),`},
	})
}
