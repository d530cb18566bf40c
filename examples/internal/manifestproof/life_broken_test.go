// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// widened proves that the audit measures each role: with a right too many in any of them, the log of the same life shows that nobody has used it.
func (f *fleet) widened(base string) {
	f.t.Helper()
	lived := events(f.t, f.log)
	for role := range newAudit(f.t, build(f.t, base)).unused {
		all := build(f.t, base)
		for i, u := range all {
			if key(u) == role {
				all[i] = withRules(f, u, func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule { return append(rules, rule("", "pods", "delete")) })
			}
		}
		a := newAudit(f.t, all)
		a.read(lived)
		if left, want := a.left(), []string{role + ": delete /pods"}; !slices.Equal(left, want) {
			f.t.Errorf("with a right too many not used are %q, want %q", left, want)
		}
	}
}

// withRules is a role with other rules.
func withRules(f *fleet, u *unstructured.Unstructured, change func([]rbacv1.PolicyRule) []rbacv1.PolicyRule) *unstructured.Unstructured {
	f.t.Helper()
	role := typed[rbacv1.ClusterRole](f.t, u)
	role.Rules = change(role.Rules)
	return untyped(f.t, role)
}

// since is the audit of what was asked for after the life.
func (f *fleet) since() *audit {
	f.t.Helper()
	more := strings.TrimPrefix(read(f.t, f.env.AuditLog()), f.log)
	a := newAudit(f.t, build(f.t, "."))
	a.read(events(f.t, whole(more)))
	return a
}

// whole is a log without a last line that is being written.
func whole(log string) string { return log[:strings.LastIndex(log, "\n")+1] }

// narrowed proves that the audit finds a right too few: a controller that may not make the shadows of nodes is denied that, and the log shows it.
func (f *fleet) narrowed() {
	f.t.Helper()
	for _, u := range only(build(f.t, "controller"), "ClusterRole") {
		narrow := withRules(f, u, func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
			i := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "nodeshadows") })
			rules[i].Verbs = slices.DeleteFunc(rules[i].Verbs, func(v string) bool { return v == "create" })
			return rules
		})
		f.apply(f.t, []*unstructured.Unstructured{narrow})
	}
	r := f.replicas[0]
	r.start()
	f.begins("v6")
	f.eventually("a right too few is in the log", func() error { return f.finds(controllerUser + ": create belay.dev/nodeshadows ") })
	r.stops()
}

// trespassed proves that the audit finds what a policy denies: an agent that writes the Lease of another node.
func (f *fleet) trespassed() {
	f.t.Helper()
	var file string
	for _, a := range f.agents {
		for _, arg := range a.args {
			if path, is := strings.CutPrefix(arg, "--kubeconfig="); is {
				file = path
			}
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	must(f.t, err)
	client, err := kubernetes.NewForConfig(config)
	must(f.t, err)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "another-node"}}
	if _, err := client.CoordinationV1().Leases(agentNamespace).Create(f.t.Context(), lease, metav1.CreateOptions{}); err == nil {
		f.t.Error("an agent has made the Lease of another node")
	}
	f.eventually("what the policy denies is in the log", func() error { return f.finds(agentUser + ": create coordination.k8s.io/leases another-node") })
}

// finds is an error unless the audit has found that a request was denied, which begins with a text.
func (f *fleet) finds(request string) error {
	a := f.since()
	if !slices.ContainsFunc(a.denied, func(line string) bool { return strings.HasPrefix(line, request) }) {
		return fmt.Errorf("denied are %q, want %q among them", a.denied, request)
	}
	return nil
}
