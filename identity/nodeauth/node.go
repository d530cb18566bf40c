// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"fmt"
	"strings"
)

// nodeRulesOf are for the Node itself. They come after the rule that lets through an update of its status alone, so that there
// is an object before and after.
func nodeRulesOf(o Options) []policyRule {
	if len(o.NodeConditions) == 0 {
		return nil
	}
	changes := nodeChanges(o)
	return []policyRule{
		{
			"variables.kind != 'nodes' || oldObject.?metadata.?uid.orValue('') == variables.nodeUID",
			`'node "' + variables.node + '" is not the one that the token is bound to: its UID must be ' + variables.nodeUID`,
		},
		{
			"variables.kind != 'nodes' || (" + changes + ").size() == 0",
			`'the agent of node "' + variables.node + '" may write the conditions ` + strings.Join(conditionTypes(o), ", ") +
				` of its Node and nothing else, but this changes: ' + (` + changes + `).join(', ')`,
		},
	}
}

// nodeChanges are the keys in which a Node differs after the write, level by level. They are found in the object itself and not in a list of
// known fields, so that a field which a later Kubernetes has is seen too. The server keeps the excepted ones itself.
func nodeChanges(o Options) string {
	others := func(object string) string {
		return fmt.Sprintf("%s.?status.?conditions.orValue([]).filter(c, !(c.?type.orValue('') in %s))", object, list(conditionTypes(o)))
	}
	return strings.Join([]string{
		differing("", "dyn(oldObject)", "dyn(object)", "metadata", "status"),
		differing("metadata.", "oldObject.?metadata.orValue(dyn({}))", "object.?metadata.orValue(dyn({}))", "managedFields", "resourceVersion"),
		differing("status.", "oldObject.?status.orValue(dyn({}))", "object.?status.orValue(dyn({}))", "conditions"),
		"(" + others("oldObject") + " == " + others("object") + " ? [] : ['status.conditions of other types'])",
	}, " + ")
}

// differing lists the keys of two maps in which they differ, in front of each the path of the maps.
func differing(path, before, after string, except ...string) string {
	return fmt.Sprintf("(%[2]s.filter(k, !(k in %[4]s) && %[2]s[?k] != %[3]s[?k]) + %[3]s.filter(k, !(k in %[4]s) && !(k in %[2]s))).map(k, '%[1]s' + k)",
		path, before, after, list(except))
}

func conditionTypes(o Options) []string {
	var types []string
	for _, c := range o.NodeConditions {
		types = append(types, string(c))
	}
	return types
}
