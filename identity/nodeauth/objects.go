// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/internal/option"
)

// nodeSuffix is added to the name for the role with the rights on Nodes, which is for the service account alone.
const nodeSuffix = "-node"

// Objects returns what guards the agents and then gives them their rights, in the order in which to create it: the policy, its
// binding, where there are Leases a FlowSchema for them, a ClusterRole and Roles, and last the bindings of those.
//
// The API server takes a second or so to obey a new policy: whoever cannot have that gap waits before the bindings until a dry run is
// refused. A role that is bound without the policy lets every agent write for every node.
func Objects(o Options) ([]runtime.Object, error) {
	if err := option.CheckRequired("identity/nodeauth.Objects", "Options.Name", o.Name, "that of the policy"); err != nil {
		return nil, err
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	objects := []runtime.Object{guard(o), binding(o)}
	if leases := heartbeats(o); len(leases) > 0 {
		objects = append(objects, flowSchema(o, leases))
	}
	grants := grants(o)
	for _, g := range grants {
		objects = append(objects, g.role())
	}
	for _, g := range grants {
		objects = append(objects, g.binding())
	}
	return objects, nil
}

// A grant is a role and whom it is bound to.
type grant struct {
	name, namespace string // without a namespace it is for the cluster
	rules           []rbacv1.PolicyRule
	subjects        []rbacv1.Subject
}

// grants are ordered: the cluster's, those on Nodes, and one for each namespace.
func grants(o Options) []grant {
	var all []grant
	for _, r := range o.Resources {
		name := o.Name
		if r.isNode() {
			name += nodeSuffix
		}
		all = add(all, o, name, r.Namespace, resourceRules(r)...)
	}
	all = add(all, o, o.Name+nodeSuffix, "", nodeRules(o)...)
	slices.SortStableFunc(all, func(a, b grant) int {
		return slices.Compare([]string{a.namespace, a.name}, []string{b.namespace, b.name})
	})
	return all
}

// add gives rules to the grant of a name in a namespace, which it makes where there is none.
func add(all []grant, o Options, name, namespace string, rules ...rbacv1.PolicyRule) []grant {
	if len(rules) == 0 {
		return all
	}
	i := slices.IndexFunc(all, func(g grant) bool { return g.name == name && g.namespace == namespace })
	if i < 0 {
		i = len(all)
		all = append(all, grant{name: name, namespace: namespace, subjects: subjects(o, name == o.Name)})
	}
	all[i].rules = append(all[i].rules, rules...)
	return all
}

// subjects are the service account and, where they are guarded and not for Nodes, the node users.
func subjects(o Options, nodeUsers bool) []rbacv1.Subject {
	var ss []rbacv1.Subject
	if o.ServiceAccount.Name != "" {
		ss = append(ss, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: o.ServiceAccount.Namespace, Name: o.ServiceAccount.Name})
	}
	if nodeUsers && o.NodeUsers {
		ss = append(ss, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:nodes"})
	}
	return ss
}

func resourceRules(r Resource) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	if len(r.Verbs) > 0 {
		rules = append(rules, rule(r.Group, r.Resource, r.Verbs...))
	}
	for _, s := range r.Subresources {
		rules = append(rules, rule(r.Group, r.Resource+"/"+s, "patch", "update"))
	}
	return rules
}

// nodeRules are for the conditions, and for reading the pods of the own node as the node. The latter names no node: that it is the
// own one the API server sees from the token.
func nodeRules(o Options) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	if len(o.NodeConditions) > 0 {
		rules = append(rules, rule("", "nodes", "get"), rule("", "nodes/status", "patch"))
	}
	if o.NodePods {
		rules = append(rules,
			rule("authentication.k8s.io", "nodes", "impersonate:associated-node"),
			rule("", "pods", "impersonate-on:associated-node:get", "impersonate-on:associated-node:list", "impersonate-on:associated-node:watch"))
	}
	return rules
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: slices.Clone(verbs)}
}

func (g grant) role() runtime.Object {
	meta := metav1.ObjectMeta{Name: g.name, Namespace: g.namespace}
	if g.namespace == "" {
		return &rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: meta, Rules: g.rules}
	}
	return &rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: meta, Rules: g.rules}
}

func (g grant) binding() runtime.Object {
	meta := metav1.ObjectMeta{Name: g.name, Namespace: g.namespace}
	if g.namespace == "" {
		return &rbacv1.ClusterRoleBinding{
			TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: meta, Subjects: g.subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: g.name},
		}
	}
	return &rbacv1.RoleBinding{
		TypeMeta: rbacType("RoleBinding"), ObjectMeta: meta, Subjects: g.subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: g.name},
	}
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// nodeHigh is the priority level that every API server has for the heartbeats of kubelets, and flowPrecedence puts the schema behind
// theirs (400) and ahead of those for service accounts (900 and 9000).
const (
	nodeHigh       = "node-high"
	flowPrecedence = 450
)

// heartbeats are the rules for the Leases that agents write. The server refuses a rule without verbs, and Leases have no subresources: an agent whose
// only right is to those has no heartbeat.
func heartbeats(o Options) []flowcontrolv1.ResourcePolicyRule {
	var rules []flowcontrolv1.ResourcePolicyRule
	for _, r := range o.Resources {
		if verbs := beats(r.Verbs); r.isLease() && r.writes() && len(verbs) > 0 {
			rules = append(rules, flowcontrolv1.ResourcePolicyRule{
				Verbs: verbs, APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Namespaces: []string{r.Namespace},
			})
		}
	}
	return rules
}

// beats are the verbs without those for many Leases at once, which are dear and no heartbeat.
func beats(verbs []string) []string {
	return slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return v == "list" || v == "watch" })
}

// flowSchema keeps the heartbeats apart from what workloads ask of the server.
func flowSchema(o Options, rules []flowcontrolv1.ResourcePolicyRule) *flowcontrolv1.FlowSchema {
	account := flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{
		Namespace: o.ServiceAccount.Namespace, Name: o.ServiceAccount.Name,
	}}
	return &flowcontrolv1.FlowSchema{
		TypeMeta:   metav1.TypeMeta{APIVersion: flowcontrolv1.SchemeGroupVersion.String(), Kind: "FlowSchema"},
		ObjectMeta: metav1.ObjectMeta{Name: o.Name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: nodeHigh},
			MatchingPrecedence:         flowPrecedence,
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules:                      []flowcontrolv1.PolicyRulesWithSubjects{{Subjects: []flowcontrolv1.Subject{account}, ResourceRules: rules}},
		},
	}
}
