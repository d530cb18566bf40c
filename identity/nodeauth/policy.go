// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// guard is the policy. Nodes are in it also where agents may write no condition: then they write nothing there.
func guard(o Options) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: o.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: rules(o), MatchPolicy: new(admissionregistrationv1.Equivalent)},
			MatchConditions:  []admissionregistrationv1.MatchCondition{{Name: "caller", Expression: callerExpression(o)}},
			Variables:        variables(o),
			Validations:      validations(o),
		},
	}
}

// rules take in every subresource: one that agents may not write is refused like any other write that Options don't name.
func rules(o Options) []admissionregistrationv1.NamedRuleWithOperations {
	var named []admissionregistrationv1.NamedRuleWithOperations
	guarded := append(slices.Clone(o.Resources), Resource{Resource: "nodes"})
	seen := map[string]bool{}
	for _, r := range guarded {
		r.Namespace = ""
		if seen[r.path()] {
			continue
		}
		seen[r.path()] = true
		named = append(named, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{
				admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
			},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{r.Group}, APIVersions: []string{"*"}, Resources: []string{r.Resource, r.Resource + "/*"},
				Scope: new(admissionregistrationv1.AllScopes),
			},
		}})
	}
	return named
}

// binding puts the policy to work, everywhere.
func binding(o Options) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: o.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        o.Name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny, admissionregistrationv1.Audit},
		},
	}
}

// validations are in the order in which the first that fails is reported.
func validations(o Options) []admissionregistrationv1.Validation {
	all := []admissionregistrationv1.Validation{
		{
			Expression:        boundExpression,
			Message:           "the caller's token must be bound to one pod on one node",
			MessageExpression: boundMessage,
		},
		{
			Expression:        "variables.write in " + list(writes(o)),
			Message:           "agents may not write this",
			MessageExpression: writeMessage(o),
		},
		{
			Expression:        nameExpression,
			Message:           "agents may write objects named after their own node only",
			MessageExpression: nameMessage,
		},
		{
			Expression:        ownerExpression(o),
			Message:           "agents may write objects owned by their own Node only",
			MessageExpression: ownerMessage,
		},
	}
	if len(o.NodeConditions) > 0 {
		all = append(all, nodeValidations(o)...)
	}
	for i := range all {
		all[i].Reason = new(metav1.StatusReasonForbidden)
	}
	return all
}
