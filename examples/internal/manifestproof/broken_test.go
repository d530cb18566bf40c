// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unguarded proves that the matrix measures the policy: without its binding a cell of it changes, and with it the cell is as it was.
func (s *stage) unguarded(t *testing.T) {
	t.Helper()
	const action = "report in the NodeShadow of another node"
	agent := s.actors["agent in a pod"]
	bindings := s.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	must(t, bindings.Delete(t.Context(), podAgents().Name, metav1.DeleteOptions{}))
	if got, err := s.outcome(t, agent, actions()[action], "yes"); got != "yes" {
		t.Errorf("without the policy's binding: %s: got %q, want yes, or the matrix shows nothing: %v", action, got, err)
	}
	s.apply(t, guards(t))
	if got, err := s.outcome(t, agent, actions()[action], "policy"); got != "policy" {
		t.Errorf("with the policy's binding again: %s: got %q, want policy: %v", action, got, err)
	}
}

// widened proves that the matrix measures the roles: with a right too many a cell of it changes.
func (s *stage) widened(t *testing.T) {
	t.Helper()
	const action = "pause, abort or roll back a Rollout"
	roles := s.admin.RbacV1()
	_, err := roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "too-wide"}, Rules: []rbacv1.PolicyRule{rule("belay.dev", "rollouts", "patch")},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = roles.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "too-wide"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "too-wide"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "people"}},
	}, metav1.CreateOptions{})
	must(t, err)
	if got, err := s.outcome(t, s.actors["viewer"], actions()[action], "yes"); got != "yes" {
		t.Errorf("with a right too many: %s: got %q, want yes, or the matrix shows nothing: %v", action, got, err)
	}
	must(t, roles.ClusterRoleBindings().Delete(t.Context(), "too-wide", metav1.DeleteOptions{}))
	if got, err := s.outcome(t, s.actors["viewer"], actions()[action], "role"); got != "role" {
		t.Errorf("with the roles of the manifests again: %s: got %q, want role: %v", action, got, err)
	}
}

// Rights too many and too few are found.
func TestRightsThatDifferAreFound(t *testing.T) {
	want := controllerRights()
	for what, rules := range map[string][]rbacv1.PolicyRule{
		"a verb":          {rule("", "pods", "delete")},
		"a resource":      {rule("", "secrets", "get")},
		"a sub-resource":  {rule("belay.dev", "nodeshadows/status", "patch")},
		"everything":      {rule("*", "*", "*")},
		"every verb":      {rule("", "nodes", "*")},
		"another group":   {rule("extensions", "nodes", "get")},
		"another one too": {{APIGroups: []string{"", "batch"}, Resources: []string{"nodes"}, Verbs: []string{"get"}}},
	} {
		if more := beyond(flat(rules), want); len(more) == 0 {
			t.Errorf("%s too many is not found", what)
		}
	}
	if less := beyond(want, flat(nil)); len(less) != len(want) {
		t.Errorf("of %d rights that are missing, %d are found", len(want), len(less))
	}
}
