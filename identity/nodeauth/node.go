// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// nodeFacts are the parts of an object before and after a write, as far as it has them.
func nodeFacts() []admissionregistrationv1.Variable {
	part := func(object, name string) string {
		return fmt.Sprintf("%[1]s != null && has(%[1]s.%[2]s) ? dyn(%[1]s.%[2]s) : dyn({})", object, name)
	}
	return []admissionregistrationv1.Variable{
		{Name: "oldMetadata", Expression: part("oldObject", "metadata")},
		{Name: "newMetadata", Expression: part("object", "metadata")},
		{Name: "oldStatus", Expression: part("oldObject", "status")},
		{Name: "newStatus", Expression: part("object", "status")},
	}
}

// isNode wants the Node to be the one in the token. It is for an update, so that there is an object before.
func isNode() requirement {
	return requirement{
		"variables.oldMetadata.?uid.orValue('') == variables.nodeUID",
		`'node "' + variables.node + '" is not the one that the token is bound to: its UID must be ' + variables.nodeUID`,
	}
}

// nodeValidation says of a write to a Node what nodeExpression wants. It is a validation of its own with a fixed message.
func nodeValidation(o Options) admissionregistrationv1.Validation {
	return admissionregistrationv1.Validation{
		Expression: nodeExpression(o),
		Message:    "an agent may write the conditions " + strings.Join(conditionTypes(o), ", ") + " in the status of its own Node, and nothing else of a Node",
	}
}

// nodeExpression wants that an update changes nothing of a Node but the conditions. It compares whatever keys the object has and not a list of
// known fields, so that a field which a later Kubernetes has is seen too; the server keeps the excepted ones itself.
func nodeExpression(o Options) string {
	own := list(conditionTypes(o))
	others := func(status string) string {
		return fmt.Sprintf("%s.?conditions.orValue([]).filter(c, !(c.?type.orValue('') in %s))", status, own)
	}
	return "!(" + nodeStatus().is() + ") || object == null || oldObject == null ||\n" + strings.Join([]string{
		unchanged("dyn(oldObject)", "dyn(object)", "metadata", "status"),
		unchanged("variables.oldMetadata", "variables.newMetadata", "managedFields", "resourceVersion"),
		unchanged("variables.oldStatus", "variables.newStatus", "conditions"),
		others("variables.oldStatus") + " == " + others("variables.newStatus"),
	}, " &&\n")
}

// nodeStatus is what NodeConditions stands for.
func nodeStatus() Resource { return Resource{Resource: "nodes", Subresources: []string{"status"}} }

// unchanged says that two maps have the same keys and values, but for some keys. Where both have as many keys, and each of the excepted ones is in both
// or in none, no key is new.
func unchanged(before, after string, except ...string) string {
	asMany := []string{fmt.Sprintf("size(%s) == size(%s)", before, after)}
	for _, key := range except {
		asMany = append(asMany, fmt.Sprintf("has(%[1]s.%[3]s) == has(%[2]s.%[3]s)", before, after, key))
	}
	return fmt.Sprintf("%[1]s.all(k, k in %[3]s || %[1]s[?k] == %[2]s[?k]) && (%[4]s || %[2]s.all(k, k in %[3]s || k in %[1]s))",
		before, after, list(except), strings.Join(asMany, " && "))
}

func conditionTypes(o Options) []string {
	var types []string
	for _, c := range o.NodeConditions {
		types = append(types, string(c))
	}
	return types
}
