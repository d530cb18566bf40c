// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// guard is the policy. Nodes are in it also where agents may write no condition: then they write nothing there.
func guard(o Options) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: o.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: constraints(o),
			MatchConditions:  conditions(o),
			Variables:        variables(o),
			Validations:      validations(o),
		},
	}
}

// conditions let go what the policy is not for, and what has no fault. The server evaluates each of several conditions for every write, so there is
// one. Of other namespaces it does what a second binding with a selector could do too; with one binding, however, a probe of one kind knows of
// all that it is there.
func conditions(o Options) []admissionregistrationv1.MatchCondition {
	parts := []string{callerExpression(o), faultyExpression(o)}
	if confined := o.confined(); len(confined) > 0 && !o.selectable() {
		parts = append(parts, placeExpression(confined, o.namespaces()))
	}
	return []admissionregistrationv1.MatchCondition{{Name: "fault", Expression: "(" + strings.Join(parts, ") &&\n(") + ")"}}
}

// constraints leave the namespaces alone in which agents have nothing: the Leases of kubelets and of leader elections elsewhere neither
// wait for this policy nor depend on it. A selector is for all rules: it would let an agent write a kind whose Namespace was forgotten in every
// namespace but those of the other kinds, as the role is for all. Therefore it is there only where every kind has its namespaces.
func constraints(o Options) *admissionregistrationv1.MatchResources {
	m := &admissionregistrationv1.MatchResources{ResourceRules: rules(o), MatchPolicy: ptr.To(admissionregistrationv1.Equivalent)}
	if namespaces := o.namespaces(); len(namespaces) > 0 && o.selectable() {
		m.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces},
		}}
	}
	return m
}

// namespaces are those in which agents have something.
func (o Options) namespaces() []string {
	var all []string
	for _, r := range o.Resources {
		if r.Namespace != "" {
			all = append(all, r.Namespace)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// confined are the names of the kinds of which every entry has a namespace.
func (o Options) confined() []string {
	var names []string
	for _, r := range o.Resources {
		everywhere := func(other Resource) bool { return other.name() == r.name() && other.Namespace == "" }
		if !slices.ContainsFunc(o.Resources, everywhere) {
			names = append(names, r.name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// selectable reports whether a selector of namespaces exempts nothing that agents could write: Nodes have none for sure.
func (o Options) selectable() bool {
	return !slices.ContainsFunc(o.Resources, func(r Resource) bool { return r.Namespace == "" && !r.isNode() })
}

// rules take in every subresource: one that agents may not write is refused like any other write that Options don't name.
func rules(o Options) []admissionregistrationv1.NamedRuleWithOperations {
	var named []admissionregistrationv1.NamedRuleWithOperations
	guarded := append(slices.Clone(o.Resources), Resource{Resource: "nodes"})
	seen := map[string]bool{}
	for _, r := range guarded {
		if seen[r.name()] {
			continue
		}
		seen[r.name()] = true
		named = append(named, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{
				admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
			},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{r.Group}, APIVersions: []string{"*"}, Resources: []string{r.Resource, r.Resource + "/*"},
				Scope: ptr.To(admissionregistrationv1.AllScopes),
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

func validations(o Options) []admissionregistrationv1.Validation {
	all := []admissionregistrationv1.Validation{{
		Expression: "variables.fault == ''", MessageExpression: "variables.fault", Message: "an agent may write what belongs to its own node only",
	}}
	if len(o.NodeConditions) > 0 {
		all = append(all, nodeValidation(o))
	}
	for i := range all {
		all[i].Reason = ptr.To(metav1.StatusReasonForbidden)
	}
	return all
}
