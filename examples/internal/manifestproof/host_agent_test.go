// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configkube "github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/identity/nodeauth"
	"github.com/belayproject/belay/rollout/kube"
)

const (
	hostAgent       = "belay-host-agent"
	configNamespace = "belay-configs"
)

// nameless are rules for the objects of every node.
func nameless(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	rules = slices.Clone(rules)
	for i := range rules {
		rules[i].ResourceNames = nil
	}
	return rules
}

// R-AU-01: agents on hosts have what the packages name and nothing else, it is for the callers whom the policy guards, and the policy names every kind
// that they may write.
func TestHostAgentsHaveTheirRightsAlone(t *testing.T) {
	all := build(t, "host-agent")
	got := flat(find[rbacv1.ClusterRole](t, all, "ClusterRole", hostAgent).Rules)
	want := flat(nameless(slices.Concat(configkube.NodeConfigRules("n"), kube.AgentRules(""))))
	if !maps.Equal(got, want) {
		t.Errorf("the ClusterRole gives what nothing needs, %q, and lacks %q", beyond(got, want), beyond(want, got))
	}
	role := find[rbacv1.Role](t, all, "Role", hostAgent)
	if got, want := flat(role.Rules), flat(configkube.ConfigMapRules()); !maps.Equal(got, want) || role.Namespace != configNamespace {
		t.Errorf("the Role gives %v in %q, want %v in %q", got, role.Namespace, want, configNamespace)
	}
	guarded := map[string]bool{}
	for _, r := range hostAgents().Resources {
		for _, sub := range r.Subresources {
			guarded["patch "+r.Group+"/"+r.Resource+"/"+sub] = true
		}
	}
	reads := func(right string) bool {
		return strings.HasPrefix(right, "get ") || strings.HasPrefix(right, "list ") || strings.HasPrefix(right, "watch ")
	}
	for right := range got {
		if !reads(right) && !guarded[right] {
			t.Errorf("the ClusterRole gives %q, which the policy does not guard", right)
		}
	}
	for _, u := range only(all, "ClusterRoleBinding", "RoleBinding") {
		if who := typed[rbacv1.ClusterRoleBinding](t, u).Subjects; !slices.Equal(who, guardedUsers(t)) {
			t.Errorf("%s is for %v, want those whom the policy guards, %v", key(u), who, guardedUsers(t))
		}
	}
}

// guardedUsers are those to whom package nodeauth itself would bind the roles.
func guardedUsers(t *testing.T) []rbacv1.Subject {
	t.Helper()
	objects, err := nodeauth.Objects(hostAgents())
	must(t, err)
	for _, object := range objects {
		if b, ok := object.(*rbacv1.ClusterRoleBinding); ok {
			return b.Subjects
		}
	}
	t.Fatal("package nodeauth binds no role to agents on hosts")
	return nil
}

// What the unit, the role and the pages say of Leases: with the right to them in every namespace, a kubelet's certificate is still refused any but its own.
func TestKubeletsKeepNoLeaseOfOurs(t *testing.T) {
	c := installed(t)
	const name = "lease-host"
	node, err := c.env.CreateNode(t.Context(), name)
	must(t, err)
	kubelet := c.kubelet(t, name)
	meta, roles := metav1.ObjectMeta{Name: name}, c.admin.RbacV1()
	_, err = roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule("coordination.k8s.io", "leases", "get", "create", "update", "delete")},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = roles.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:node:" + name}},
	}, metav1.CreateOptions{})
	must(t, err)
	keep := func(namespace string) action {
		return func(ctx context.Context, _ *stage, who *actor) error {
			owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{owner}}}
			_, err := who.core.CoordinationV1().Leases(namespace).Create(ctx, lease, metav1.CreateOptions{DryRun: dry})
			return err
		}
	}
	eventually(t, "a kubelet keeps its own Lease", func() error { return wants("yes", keep(corev1.NamespaceNodeLease)(t.Context(), nil, kubelet)) })
	must(t, wrapped("a Lease of ours", wants("server", keep(agentNamespace)(t.Context(), nil, kubelet))))
}

// kubelet is who has the certificate of a node's kubelet.
func (c *cluster) kubelet(t *testing.T, node string) *actor {
	t.Helper()
	var a actor
	a.core, a.objects = clients(t, c.env.User(t, "system:node:"+node, "system:nodes"))
	return &a
}
