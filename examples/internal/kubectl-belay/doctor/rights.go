// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A CRD is a definition as the cluster has it.
type CRD struct {
	// Want is the definition that this program was built with.
	Want *unstructured.Unstructured
	// Is is that of the cluster, nil if Err says why not.
	Is  *unstructured.Unstructured
	Err error
}

// Definitions are those that this program was built with.
func Definitions() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, text := range v1alpha1.CRDs() {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			return nil, fmt.Errorf("reading the definitions of this program: %w", err)
		}
		all = append(all, u)
	}
	return all, nil
}

const (
	installCRDs = "kubectl apply --server-side -k rollout/v1alpha1/crd of the version of the controller"
	crdCheck    = "definitions"
)

func definitions(s *Seen) []Finding {
	var found []Finding
	for _, c := range s.CRDs {
		name := c.Want.GetName()
		switch {
		case apierrors.IsNotFound(c.Err):
			found = append(found, finding(crdCheck, Problem, fmt.Sprintf("there is no %s", name), installCRDs))
		case c.Err != nil:
			found = append(found, finding(crdCheck, Unknown, fmt.Sprintf("%s can't be read: %v", name, c.Err), "get the rights of the ClusterRole belay-viewer"))
		case !established(c.Is):
			found = append(found, finding(crdCheck, Problem, name+" is there, and not served", "kubectl describe crd "+name+" says why"))
		default:
			if why := differs(c.Is, c.Want); why != "" {
				found = append(found, finding(crdCheck, Problem, fmt.Sprintf("%s is of another version than this program: %s", name, why),
					installCRDs+", or use the kubectl-belay of that version"))
			}
		}
	}
	return orOK(found, crdCheck, fmt.Sprintf("%d are served, of the version of this program", len(s.CRDs)))
}

func established(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		fields, _ := c.(map[string]any)
		return fields["type"] == "Established" && fields["status"] == "True"
	})
}

// differs says in which version the schema differs; empty if in none.
func differs(is, want *unstructured.Unstructured) string {
	schemas := func(u *unstructured.Unstructured) map[string]any {
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		all := map[string]any{}
		for _, v := range versions {
			if fields, ok := v.(map[string]any); ok && fields["served"] == true {
				all[fmt.Sprint(fields["name"])] = plain(fields["schema"])
			}
		}
		return all
	}
	have := schemas(is)
	for version, schema := range schemas(want) {
		if there, ok := have[version]; !ok {
			return "it does not serve " + version
		} else if !reflect.DeepEqual(there, schema) {
			return "the schema of " + version + " differs"
		}
	}
	return ""
}

// plain is a value with the types that JSON has.
func plain(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var out any
	if json.Unmarshal(raw, &out) != nil {
		return v
	}
	return out
}

// A Right is something that somebody may have to be allowed to do.
type Right struct {
	// Controller: the account of the controllers needs it; otherwise whoever runs this.
	Controller bool
	// For says what does not work without it.
	For                                     string
	Verb, Group, Resource, Sub, InNamespace string

	Allowed bool
	Err     error
}

// Needed are the rights that are checked, for controllers whose Leases are in a namespace.
func Needed(namespace string) []Right {
	all := rightsOf(ViewerRules(), Right{For: "status, why, plan, history and doctor"})
	all = append(all, Right{For: "doctor, to see whether a controller is alive", Verb: "get", Group: "coordination.k8s.io", Resource: "leases", InNamespace: namespace})
	all = append(all, rightsOf(OperatorRules(), Right{For: "the verbs, and doctor's look at the rights of the controller"})...)
	controller := slices.Concat(kube.ControllerRules(), kube.HealthRules(), []rbacv1.PolicyRule{
		rule("", "nodes/status", "patch"), rule("", "pods/eviction", "create"),
		rule("policy", "poddisruptionbudgets", "list", "watch"), rule("events.k8s.io", "events", "create", "patch"),
	})
	all = append(all, rightsOf(controller, Right{Controller: true, For: "rollouts"})...)
	leases := []rbacv1.PolicyRule{rule("coordination.k8s.io", "leases", "get", "create", "update", "delete")}
	all = append(all, rightsOf(leases, Right{Controller: true, For: "the election of a leader", InNamespace: namespace})...)
	var once []Right
	for _, r := range all {
		if !slices.ContainsFunc(once, func(o Right) bool { return o.Controller == r.Controller && o.String() == r.String() }) {
			once = append(once, r)
		}
	}
	return once
}

// ViewerRules are what whoever only looks needs in the whole cluster.
func ViewerRules() []rbacv1.PolicyRule {
	look, group := []string{"get", "list", "watch"}, v1alpha1.GroupVersion.Group
	return []rbacv1.PolicyRule{
		rule(group, v1alpha1.RolloutsResource.Resource, look...), rule(group, v1alpha1.RevisionsResource.Resource, "list"),
		rule(group, v1alpha1.NodeShadowsResource.Resource, "list"), rule(group, v1alpha1.DisruptionLedgersResource.Resource, "list"),
		rule("", "nodes", "list", "watch"), rule("", "pods", "list", "watch"),
		rule("apps", "deployments", "list", "watch"), rule("apps", "statefulsets", "list", "watch"), rule("apps", "daemonsets", "list", "watch"),
		rule("policy", "poddisruptionbudgets", "list"), rule("apiextensions.k8s.io", "customresourcedefinitions", "get"),
	}
}

// OperatorRules are what whoever uses the verbs needs besides.
func OperatorRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(v1alpha1.GroupVersion.Group, v1alpha1.RolloutsResource.Resource, "patch"),
		rule("authorization.k8s.io", "subjectaccessreviews", "create"),
	}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func rightsOf(rules []rbacv1.PolicyRule, like Right) []Right {
	var all []Right
	for _, r := range rules {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				right := like
				right.Verb, right.Group = verb, r.APIGroups[0]
				right.Resource, right.Sub, _ = strings.Cut(resource, "/")
				all = append(all, right)
			}
		}
	}
	return all
}

// String is the right in words.
func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text = r.Verb + " " + r.Resource + "." + r.Group
	}
	if r.Sub != "" {
		text += "/" + r.Sub
	}
	if r.InNamespace != "" {
		text += " in namespace " + r.InNamespace
	}
	return text
}

func rights(s *Seen) []Finding {
	return append(
		rightsOfOne(s, false, "rights", "you have all that the commands use",
			"bind the ClusterRole belay-viewer or belay-operator of examples/manifests/kubectl-belay to you"),
		rightsOfOne(s, true, "controller rights", fmt.Sprintf("%s has all that it uses", s.Account),
			fmt.Sprintf("apply examples/manifests/controller/rbac.yaml, or name the account with --account if it is not %s", s.Account))...)
}

func rightsOfOne(s *Seen, controller bool, check, good, remedy string) []Finding {
	lacking, unknown := map[string][]string{}, []string{}
	var reasons []string
	var err error
	for _, r := range s.Rights {
		switch {
		case r.Controller != controller:
		case r.Err != nil:
			unknown, err = append(unknown, r.String()), r.Err
		case !r.Allowed:
			if lacking[r.For] == nil {
				reasons = append(reasons, r.For)
			}
			lacking[r.For] = append(lacking[r.For], r.String())
		}
	}
	level, whose := Note, "you lack"
	if controller {
		level, whose = Problem, "the controller lacks"
	}
	var found []Finding
	for _, reason := range reasons {
		found = append(found, finding(check, level, fmt.Sprintf("%s, for %s: %s", whose, reason, some(lacking[reason])), remedy))
	}
	if len(unknown) > 0 {
		found = append(found, finding(check, Unknown, fmt.Sprintf("%d rights can't be asked for: %v", len(unknown), err),
			"ask somebody who has the ClusterRole belay-operator to run this"))
	}
	return orOK(found, check, good)
}
