// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/identity/nodeauth"
)

// reference are options as an agent needs them that writes a status, a condition and a heartbeat.
func (c *cluster) reference(account string) nodeauth.Options {
	return nodeauth.Options{
		Name:           c.namespace + "-reference",
		ServiceAccount: types.NamespacedName{Namespace: c.namespace, Name: account},
		Resources: []nodeauth.Resource{
			{Group: shadows.Group, Resource: shadows.Resource, Verbs: []string{"get", "list", "watch"}, Subresources: []string{"status"}},
			{Group: leases.Group, Resource: leases.Resource, Namespace: c.namespace, Verbs: []string{"get", "create", "update", "delete"}},
		},
		NodeConditions: []corev1.NodeConditionType{"ConfigOK"},
		NodePods:       true,
	}
}

// narrow makes a service account with no rights but those that are generated.
func (c *cluster) narrow(t *testing.T) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "narrow"}}
	_, err := c.admin.CoreV1().ServiceAccounts(c.namespace).Create(t.Context(), account, metav1.CreateOptions{})
	must(t, err)
	c.options = c.reference("narrow")
	objects, err := nodeauth.Objects(c.options)
	must(t, err)
	c.create(t, objects...)
}

// TestRightsAreTheNamedOnes covers R-AU-08 and R-AU-09: of all verbs on all resources that an agent may want to touch, the roles give those
// that the options name, and there alone.
func TestRightsAreTheNamedOnes(t *testing.T) {
	c := newCluster(t)
	c.narrow(t)
	want := map[string]string{
		"shadows.nodeauth.test.belay.dev":        "get list watch",
		"shadows/status.nodeauth.test.belay.dev": "update patch",
		"leases.coordination.k8s.io in ours":     "get create update delete",
		"nodes":                                  "get",
		"nodes/status":                           "patch",
		"nodes.authentication.k8s.io":            "impersonate:associated-node",
		"pods":                                   "impersonate-on:associated-node:get impersonate-on:associated-node:list impersonate-on:associated-node:watch",
	}
	verbs := []string{
		"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate", "impersonate:associated-node",
		"impersonate:arbitrary-node", "impersonate-on:associated-node:get", "impersonate-on:associated-node:list",
		"impersonate-on:associated-node:watch", "impersonate-on:associated-node:delete",
	}
	for _, resource := range []string{
		"shadows.nodeauth.test.belay.dev", "shadows/status.nodeauth.test.belay.dev", "leases.coordination.k8s.io in ours", "leases.coordination.k8s.io",
		"nodes", "nodes/status", "nodes.authentication.k8s.io", "pods", "pods/exec", "secrets", "configmaps", "serviceaccounts/token", "users",
	} {
		var got []string
		for _, verb := range verbs {
			if c.may(t, "narrow", verb, resource) {
				got = append(got, verb)
			}
		}
		if strings.Join(got, " ") != want[resource] {
			t.Errorf("%s: an agent may %q, want %q", resource, got, want[resource])
		}
	}
}

func (c *cluster) may(t *testing.T, account, verb, resource string) bool {
	t.Helper()
	path, ours := strings.CutSuffix(resource, " in ours")
	path, group, _ := strings.Cut(path, ".")
	plural, subresource, _ := strings.Cut(path, "/")
	a := &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: plural, Subresource: subresource}
	if ours {
		a.Namespace = c.namespace
	}
	review, err := c.admin.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:" + c.namespace + ":" + account, ResourceAttributes: a},
	}, metav1.CreateOptions{})
	must(t, err)
	return review.Status.Allowed
}

// TestAgentWritesNoDesiredState covers R-AU-08: an agent writes the status of its own object and not its spec. RBAC refuses that, and where
// somebody has given the agent more, the policy does.
func TestAgentWritesNoDesiredState(t *testing.T) {
	c := newCluster(t)
	a := c.agent(t, "a")
	c.has(t, a.node)
	spec := func(client *agent) error {
		_, err := client.client.Resource(shadows).Patch(t.Context(), a.node.Name, types.MergePatchType, []byte(`{"spec":{"a":"b"}}`), metav1.PatchOptions{DryRun: dry})
		return err
	}
	wide := c.reference(agents)
	c.narrow(t)
	narrow := c.agentOf(t, "narrow", a.node)
	if err := spec(narrow); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot patch resource "shadows"`) {
		t.Errorf("got %v, want RBAC to refuse it", err)
	}
	_, err := narrow.client.Resource(shadows).Patch(t.Context(), a.node.Name, types.MergePatchType, []byte(`{"status":{"a":"b"}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	c.options = wide
	c.options.Name = c.namespace
	objects, err := nodeauth.Objects(c.options)
	must(t, err)
	c.create(t, objects...)
	eventually(t, func() string {
		return c.denial(spec(a), fmt.Sprintf(`the agent of node "%s" may not UPDATE shadows.nodeauth.test.belay.dev, here shadows.nodeauth.test.belay.dev "%[1]s"; it may CREATE `+
			`leases.coordination.k8s.io in %s, DELETE leases.coordination.k8s.io in %[2]s, UPDATE leases.coordination.k8s.io in %[2]s, UPDATE status of nodes, `+
			`UPDATE status of shadows.nodeauth.test.belay.dev`, a.node.Name, c.namespace))
	})
}

// TestObjectsComeInOrder covers R-AU-06: everything that denies comes before anything that allows, and the server takes it as it is.
func TestObjectsComeInOrder(t *testing.T) {
	c := newCluster(t)
	objects, err := nodeauth.Objects(c.reference(agents))
	must(t, err)
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o.GetObjectKind().GroupVersionKind().Kind)
	}
	want := "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding FlowSchema ClusterRole ClusterRole Role ClusterRoleBinding ClusterRoleBinding RoleBinding"
	if strings.Join(kinds, " ") != want {
		t.Errorf("got %q, want %q", kinds, want)
	}
	for i, o := range objects {
		sent := untyped(t, o)
		got, err := c.api(sent).Create(t.Context(), sent, metav1.CreateOptions{DryRun: dry, FieldValidation: "Strict"})
		must(t, err)
		if got.GetName() != sent.GetName() || got.GetKind() != kinds[i] {
			t.Errorf("got a %s %q, want a %s %q", got.GetKind(), got.GetName(), kinds[i], sent.GetName())
		}
	}
	again, err := nodeauth.Objects(c.reference(agents))
	must(t, err)
	if !slices.EqualFunc(objects, again, func(a, b runtime.Object) bool { return fmt.Sprint(untyped(t, a)) == fmt.Sprint(untyped(t, b)) }) {
		t.Error("the same options give other objects the second time")
	}
}

// TestServerTakesLeasesWithoutHeartbeats: no rule of the FlowSchema is without verbs, which the server would refuse.
func TestServerTakesLeasesWithoutHeartbeats(t *testing.T) {
	c := newCluster(t)
	options := c.reference(agents)
	for name, verbs := range map[string][]string{"lists": {"list", "watch"}, "no verbs": nil, "reads": {"get", "list"}, "a heartbeat": {"list", "update"}} {
		t.Run(name, func(t *testing.T) {
			options.Resources[1].Verbs, options.Resources[1].Subresources = verbs, []string{"status"}
			objects, err := nodeauth.Objects(options)
			must(t, err)
			for _, o := range objects {
				sent := untyped(t, o)
				_, err := c.api(sent).Create(t.Context(), sent, metav1.CreateOptions{DryRun: dry, FieldValidation: "Strict"})
				must(t, err)
			}
		})
	}
}

// flows notes by which FlowSchema and priority level the server has sorted the last request.
type flows struct {
	next           http.RoundTripper
	schema, levels string
}

func (f *flows) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := f.next.RoundTrip(r)
	if err == nil {
		f.schema, f.levels = answer.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID), answer.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)
	}
	return answer, err
}

// TestHeartbeatsHaveTheirOwnLevel: the Leases of agents go by our FlowSchema to the level of the kubelets' heartbeats, and nothing else does.
func TestHeartbeatsHaveTheirOwnLevel(t *testing.T) {
	c := newCluster(t)
	a := c.agent(t, "a")
	c.has(t, a.node)
	c.options.Resources[1].Verbs = append(c.options.Resources[1].Verbs, "list", "watch")
	c.guard(t)
	ours, err := c.admin.FlowcontrolV1().FlowSchemas().Get(t.Context(), c.options.Name, metav1.GetOptions{})
	must(t, err)
	level, err := c.admin.FlowcontrolV1().PriorityLevelConfigurations().Get(t.Context(), "node-high", metav1.GetOptions{})
	must(t, err)
	seen := &flows{}
	config := c.config(a.token)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { seen.next = next; return seen })
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	eventually(t, func() string {
		_, err := client.CoordinationV1().Leases(c.namespace).Patch(t.Context(), "agent-"+a.node.Name, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
		must(t, err)
		if seen.schema != string(ours.UID) || seen.levels != string(level.UID) {
			return fmt.Sprintf("a heartbeat goes by the FlowSchema %q to the level %q, want %q and %q", seen.schema, seen.levels, ours.UID, level.UID)
		}
		return ""
	})
	for what, request := range map[string]func() error{
		"a read of a Node": func() error {
			_, err := client.CoreV1().Nodes().Get(t.Context(), a.node.Name, metav1.GetOptions{})
			return err
		},
		"a list of Leases": func() error {
			_, err := client.CoordinationV1().Leases(c.namespace).List(t.Context(), metav1.ListOptions{})
			return err
		},
	} {
		if must(t, request()); seen.schema == string(ours.UID) || seen.levels == string(level.UID) {
			t.Errorf("%s goes by the FlowSchema of the heartbeats", what)
		}
	}
}

// TestNodeUsersAreGuarded covers R-AU-01 for agents outside of pods: a caller with a kubelet's certificate writes the resources of its own node
// and is not stopped in what kubelets write besides.
func TestNodeUsersAreGuarded(t *testing.T) {
	c := newCluster(t)
	c.options = nodeauth.Options{Name: c.namespace, NodeUsers: true, Resources: c.options.Resources[:1]}
	a, b := c.node(t, "a"), c.node(t, "b")
	c.has(t, a)
	c.has(t, b)
	objects, err := nodeauth.Objects(c.options)
	must(t, err)
	c.create(t, objects...)
	typed, client := clients(t, c.env.User(t, "system:node:"+a.Name, "system:nodes"))
	status := func(name string) error {
		_, err := client.Resource(shadows).Patch(t.Context(), name, types.MergePatchType, []byte(`{"status":{"a":"b"}}`), metav1.PatchOptions{DryRun: dry}, "status")
		return err
	}
	eventually(t, func() string {
		return c.denial(status(b.Name), fmt.Sprintf(`shadows.nodeauth.test.belay.dev "%s" does not belong to node "%s": the name must be "%[2]s"`, b.Name, a.Name))
	})
	must(t, status(a.Name))
	alien := shadow(a)
	must(t, unstructured.SetNestedSlice(alien.Object, []any{owner(b.Name, string(a.UID))}, "metadata", "ownerReferences"))
	_, err = client.Resource(shadows).Patch(t.Context(), a.Name, types.MergePatchType, raw(t, alien), metav1.PatchOptions{DryRun: dry})
	if fault := c.denial(err, "must have one owner of kind Node"); fault != "" {
		t.Error(fault)
	}
	// What a kubelet does for a living.
	_, err = typed.CoreV1().Nodes().Patch(t.Context(), a.Name, types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	_, err = client.Resource(leases).Namespace(corev1.NamespaceNodeLease).Create(t.Context(), lease(a.Name), metav1.CreateOptions{})
	must(t, err)
}

// TestGuardDeniesWhatItCannotEvaluate covers R-AU-06: the policy and its binding are of the kind that denies.
func TestGuardDeniesWhatItCannotEvaluate(t *testing.T) {
	objects, err := nodeauth.Objects(nodeauth.Options{
		Name: "x", ServiceAccount: types.NamespacedName{Namespace: "a", Name: "b"}, NodeConditions: []corev1.NodeConditionType{"ConfigOK"},
	})
	must(t, err)
	policy, binding := objects[0].(*admissionregistrationv1.ValidatingAdmissionPolicy), objects[1].(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
	if *policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
		t.Errorf("got the failure policy %q, want Fail", *policy.Spec.FailurePolicy)
	}
	for _, v := range policy.Spec.Validations {
		if v.Reason == nil || *v.Reason != metav1.StatusReasonForbidden || v.Message == "" {
			t.Errorf("got %+v, want the reason Forbidden and a message", v)
		}
	}
	if a := binding.Spec.ValidationActions; !slices.Equal(a, []admissionregistrationv1.ValidationAction{"Deny", "Audit"}) {
		t.Errorf("got the actions %q, want Deny and Audit", a)
	}
}

func raw(t *testing.T, u *unstructured.Unstructured) []byte {
	t.Helper()
	b, err := u.MarshalJSON()
	must(t, err)
	return b
}
