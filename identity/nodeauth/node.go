// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// changes are the keys in which a Node differs after the write, level by level. They are found in the object itself and not in a list of
// known fields, so that a field which a later Kubernetes has is seen too. The server keeps the excepted ones itself.
func nodeChanges(o Options) string {
	own := list(conditionTypes(o))
	others := func(version string) string {
		return fmt.Sprintf("variables.%s.?status.?conditions.orValue([]).filter(c, !(c.?type.orValue('') in %s))", version, own)
	}
	return strings.Join([]string{
		differing("", "", "metadata", "status"),
		differing("metadata.", ".?metadata.orValue(dyn({}))", "managedFields", "resourceVersion"),
		differing("status.", ".?status.orValue(dyn({}))", "conditions"),
		"(" + others("before") + " == " + others("after") + " ? [] : ['status.conditions of other types'])",
	}, " + ")
}

// differing lists the keys of the maps at a place in which before and after differ.
func differing(name, at string, except ...string) string {
	before, after := "variables.before"+at, "variables.after"+at
	return fmt.Sprintf("(%s.map(k, k) + %s.map(k, k).filter(k, !(k in %s))).filter(k, !(k in %s) && %s[?k] != %s[?k]).map(k, '%s' + k)",
		before, after, before, list(except), before, after, name)
}

func nodeVariables(o Options) []admissionregistrationv1.Variable {
	if len(o.NodeConditions) == 0 {
		return nil
	}
	return []admissionregistrationv1.Variable{
		{Name: "before", Expression: "oldObject == null ? dyn({}) : dyn(oldObject)"},
		{Name: "after", Expression: "object == null ? dyn({}) : dyn(object)"},
		{Name: "changes", Expression: "variables.kind == 'nodes' ? " + nodeChanges(o) + " : []"},
	}
}

func nodeValidations(o Options) []admissionregistrationv1.Validation {
	return []admissionregistrationv1.Validation{
		{
			Expression: "variables.kind != 'nodes' || variables.objects.all(o, [o.?metadata.?uid.orValue('')] == variables.nodeUIDs)",
			Message:    "agents may write the Node that their pod is on, by UID",
			MessageExpression: `'node "' + variables.nodes.join(',') + '" is not the one that the token is bound to: its UID must be ' + ` +
				`variables.nodeUIDs.join(',')`,
		},
		{
			Expression: "variables.changes.size() == 0",
			Message:    "agents may write their own conditions of a Node, and nothing else of it",
			MessageExpression: `'the agent of node "' + variables.nodes.join(',') + '" may write the conditions ` +
				strings.Join(conditionTypes(o), ", ") + ` of its Node and nothing else, but this changes: ' + variables.changes.join(', ')`,
		},
	}
}

func conditionTypes(o Options) []string {
	var types []string
	for _, c := range o.NodeConditions {
		types = append(types, string(c))
	}
	return types
}
