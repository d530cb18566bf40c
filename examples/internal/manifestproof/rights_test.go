// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	drainkube "github.com/belayproject/belay/drain/kube"
	"github.com/belayproject/belay/examples/internal/controller/settings"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/doctor"
	machinekube "github.com/belayproject/belay/machine/kube"
	"github.com/belayproject/belay/rollout/kube"
)

// flat are rules as single rights: "patch belay.dev/rollouts/status". A wildcard is none of those that a test may want.
func flat(rules []rbacv1.PolicyRule) map[string]bool {
	all := map[string]bool{}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					name := verb + " " + group + "/" + resource
					if len(r.ResourceNames) > 0 {
						name += " " + strings.Join(r.ResourceNames, ",")
					}
					all[name] = true
				}
			}
		}
	}
	return all
}

// beyond are the rights in a that b does not have.
func beyond(a, b map[string]bool) (more []string) {
	for right := range a {
		if !b[right] {
			more = append(more, right)
		}
	}
	slices.Sort(more)
	return more
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// What the reference controller does with the flags of its Deployment takes these besides what rollout/kube names: drains by the default policy, with
// the cache that knows DaemonSets, and events.
func controllerRights() map[string]bool {
	return flat(slices.Concat(kube.ControllerRules(), kube.HealthRules(), []rbacv1.PolicyRule{
		rule("", "nodes/status", "patch"), rule("", "pods/eviction", "create"),
		rule("policy", "poddisruptionbudgets", "list", "watch"), rule("events.k8s.io", "events", "create", "patch"),
		rule("lifecycle.k8s.io", "evictionrequests", "create", "get", "list", "patch", "delete"),
		rule("lifecycle.k8s.io", "evictions", "list"),
	}))
}

// The controller has the rights that the packages name, and no other: none that a package does not name, and none of options that are not used.
func TestControllerHasItsRightsAlone(t *testing.T) {
	all := build(t, "controller")
	got := flat(find[rbacv1.ClusterRole](t, all, "ClusterRole", controllerAccount).Rules)
	if more := beyond(got, controllerRights()); len(more) > 0 {
		t.Errorf("the ClusterRole gives what nothing needs: %q", more)
	}
	if less := beyond(controllerRights(), got); len(less) > 0 {
		t.Errorf("the ClusterRole lacks %q", less)
	}
	leases := flat(find[rbacv1.Role](t, all, "Role", controllerAccount).Rules)
	toggle := rule("", "configmaps", "list", "watch")
	toggle.ResourceNames = []string{controllerAccount}
	if want := flat([]rbacv1.PolicyRule{rule("coordination.k8s.io", "leases", "get", "create", "update", "delete"), toggle}); !maps.Equal(leases, want) {
		t.Errorf("the Role gives %v, want %v", leases, want)
	}
	if named := drainRights(t); len(beyond(flat([]rbacv1.PolicyRule{rule("", "pods/eviction", "create"), rule("policy", "poddisruptionbudgets", "list", "watch")}), named)) > 0 {
		t.Errorf("drain/kube names %v, and not what this test takes for its rights", named)
	}
}

// With the flags for machines it has besides them what machine/kube names, in the namespace of machines where the API has namespaces, and nothing twice.
func TestMachinesTakeTheirRightsAlone(t *testing.T) {
	all := build(t, "machines")
	var s settings.Run
	s.AddFlags(pflag.NewFlagSet("controller", pflag.ContinueOnError))
	role := find[rbacv1.Role](t, all, "Role", controllerAccount)
	if role.Namespace != s.Machines.Namespace {
		t.Errorf("the Role is in %q, and machines are in %q", role.Namespace, s.Machines.Namespace)
	}
	if got, want := flat(role.Rules), flat(slices.Concat(machinekube.MachineRules(), machinekube.GroupRules())); !maps.Equal(got, want) {
		t.Errorf("the Role gives what nothing needs, %q, and lacks %q", beyond(got, want), beyond(want, got))
	}
	own := flat(find[rbacv1.ClusterRole](t, build(t, "controller"), "ClusterRole", controllerAccount).Rules)
	want := beyond(flat(slices.Concat(machinekube.NodeRules(), machinekube.CargoRules())), own)
	if got := beyond(flat(find[rbacv1.ClusterRole](t, all, "ClusterRole", controllerAccount+"-machines").Rules), nil); !slices.Equal(got, want) {
		t.Errorf("the ClusterRole gives %q, want %q", got, want)
	}
}

// Of the Leases of agents it has what identity takes: to watch them, to delete some, and to keep one among them.
func TestViewOfAgentsTakesItsRightsAlone(t *testing.T) {
	for _, u := range only(build(t, "agent"), "Role") {
		if u.GetName() != controllerAccount {
			continue
		}
		want := flat([]rbacv1.PolicyRule{rule("coordination.k8s.io", "leases", "get", "list", "watch", "create", "update", "delete")})
		if got := flat(typed[rbacv1.Role](t, u).Rules); !maps.Equal(got, want) || u.GetNamespace() != agentNamespace {
			t.Errorf("%s gives %v, want %v in %s", key(u), got, want, agentNamespace)
		}
		return
	}
	t.Error("the base agent has no Role for the controller")
}

// drainRights are all that drain/kube names.
func drainRights(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for document := range strings.SplitSeq(string(drainkube.RBAC()), "\n---\n") {
		var role rbacv1.ClusterRole
		must(t, yaml.Unmarshal([]byte(document), &role))
		maps.Copy(all, flat(role.Rules))
	}
	return all
}

// People have what kubectl-belay uses.
func TestPeopleHaveTheirRightsAlone(t *testing.T) {
	all := build(t, "kubectl-belay")
	for name, want := range map[string][]rbacv1.PolicyRule{"belay-viewer": doctor.ViewerRules(), "belay-operator": doctor.OperatorRules()} {
		if got := flat(find[rbacv1.ClusterRole](t, all, "ClusterRole", name).Rules); !maps.Equal(got, flat(want)) {
			t.Errorf("%s gives %v, want %v", name, got, flat(want))
		}
	}
}

// No role gives all of anything, and no role of ours is bound to everybody.
func TestNoRoleIsWide(t *testing.T) {
	all := slices.Concat(build(t, "."), build(t, "machines"), build(t, "host-agent"))
	for _, u := range only(all, "ClusterRole", "Role") {
		for right := range flat(typed[rbacv1.ClusterRole](t, u).Rules) {
			if strings.Contains(right, "*") {
				t.Errorf("%s gives %q", key(u), right)
			}
		}
	}
	for _, u := range only(all, "ClusterRoleBinding", "RoleBinding") {
		for _, s := range typed[rbacv1.ClusterRoleBinding](t, u).Subjects {
			if s.Kind != rbacv1.ServiceAccountKind && s.Name != "system:nodes" {
				t.Errorf("%s is for the %s %q", key(u), s.Kind, s.Name)
			}
		}
	}
}
