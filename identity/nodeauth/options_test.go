// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/identity/nodeauth"
)

var update = flag.Bool("update", false, "write the golden files anew")

// usual are options as the reference agent has them.
func usual() nodeauth.Options {
	return nodeauth.Options{
		Name:           "belay-agent",
		ServiceAccount: types.NamespacedName{Namespace: "belay", Name: "agent"},
		Resources: []nodeauth.Resource{
			{Group: "belay.dev", Resource: "nodeconfigs", Verbs: []string{"get", "list", "watch"}, Subresources: []string{"status"}},
			{Group: "coordination.k8s.io", Resource: "leases", Namespace: "belay", Prefix: "agent-", Verbs: []string{"get", "create", "update", "delete"}},
		},
		NodeConditions: []corev1.NodeConditionType{"ConfigOK"},
		NodePods:       true,
	}
}

// TestObjectsAreTheGoldenOnes: a change of what is generated is a change of what users install, and shows here. The server takes them:
// TestObjectsComeInOrder.
func TestObjectsAreTheGoldenOnes(t *testing.T) {
	nodeUsers := nodeauth.Options{Name: "belay-host-agent", NodeUsers: true, Resources: usual().Resources[:1]}
	for file, options := range map[string]nodeauth.Options{"testdata/agent.yaml": usual(), "testdata/nodeusers.yaml": nodeUsers} {
		objects, err := nodeauth.Objects(options)
		must(t, err)
		var got bytes.Buffer
		for _, o := range objects {
			y, err := yaml.Marshal(o)
			must(t, err)
			got.WriteString("---\n" + string(y))
		}
		if *update {
			must(t, os.WriteFile(file, got.Bytes(), 0o600))
		}
		want, err := os.ReadFile(file)
		must(t, err)
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("what is generated is not %s; -update writes it anew. Got:\n%s", file, got.String())
		}
	}
}

// TestOptionsSayWhatIsWrong: each fault is named with its field, its value and what would be right.
func TestOptionsSayWhatIsWrong(t *testing.T) {
	must(t, usual().Validate())
	status := nodeauth.Resource{Resource: "nodes", Subresources: []string{"status"}}
	resource := func(change func(r *nodeauth.Resource)) func(o *nodeauth.Options) {
		return func(o *nodeauth.Options) { change(&o.Resources[1]) }
	}
	for _, row := range []struct {
		name   string
		change func(o *nodeauth.Options)
		want   string
	}{
		{"no name", func(o *nodeauth.Options) { o.Name = "" }, "Options.Name is required"},
		{"name", func(o *nodeauth.Options) { o.Name = "A'b" }, `Name: Invalid value: "A'b": a lowercase RFC 1123 subdomain`},
		{"long name", func(o *nodeauth.Options) { o.Name = strings.Repeat("a", 249) }, "Name: Too long: may not be more than 248 bytes"},
		{"no account", func(o *nodeauth.Options) { o.ServiceAccount = types.NamespacedName{} }, "ServiceAccount: Required value: the namespace and name"},
		{"half an account", func(o *nodeauth.Options) { o.ServiceAccount.Namespace = "" }, "ServiceAccount.Namespace: Required value"},
		{"account", func(o *nodeauth.Options) { o.ServiceAccount.Name = "x' || true || '" }, `ServiceAccount.Name: Invalid value: "x' || true || '"`},
		{"nothing to guard", func(o *nodeauth.Options) { o.Resources, o.NodeConditions = nil, nil }, "Resources: Required value: name what the agents write"},
		{"no resource", resource(func(r *nodeauth.Resource) { r.Resource = "" }), "Resources[1].Resource: Required value"},
		{"subresource as resource", resource(func(r *nodeauth.Resource) { r.Resource = "leases/status" }), `Resources[1].Resource: Invalid value: "leases/status"`},
		{"every resource", resource(func(r *nodeauth.Resource) { r.Resource = "*" }), `Resources[1].Resource: Invalid value: "*"`},
		{"group", resource(func(r *nodeauth.Resource) { r.Group = "*" }), `Resources[1].Group: Invalid value: "*"`},
		{"namespace", resource(func(r *nodeauth.Resource) { r.Namespace = "a.b" }), `Resources[1].Namespace: Invalid value: "a.b"`},
		{"no namespace of Leases", resource(func(r *nodeauth.Resource) { r.Namespace = "" }), "Resources[1].Namespace: Required value: Leases are in one"},
		{"Namespaces", resource(func(r *nodeauth.Resource) { *r = nodeauth.Resource{Resource: "namespaces", Verbs: []string{"update"}} }),
			`Resources[1]: Invalid value: "namespaces": cannot belong to a node: the policy would be applied to it by its own labels`},
		{"prefix", resource(func(r *nodeauth.Resource) { r.Prefix = "a'" }), `Resources[1].Prefix: Invalid value: "a'": must make a legal name with the name of a node behind it, for example "agent-"`},
		{"prefix that no name has", resource(func(r *nodeauth.Resource) { r.Prefix = "-" }), `Resources[1].Prefix: Invalid value: "-"`},
		{"no verbs", resource(func(r *nodeauth.Resource) { r.Verbs = nil }), "Resources[1].Verbs: Required value: name what an agent may do, or Subresources"},
		{"verb for many", resource(func(r *nodeauth.Resource) { r.Verbs = []string{"deletecollection"} }),
			`Resources[1].Verbs[0]: Unsupported value: "deletecollection": supported values: "get", "list", "watch", "create", "update", "patch", "delete"`},
		{"every verb", resource(func(r *nodeauth.Resource) { r.Verbs = []string{"get", "*"} }), `Resources[1].Verbs[1]: Unsupported value: "*"`},
		{"subresource", resource(func(r *nodeauth.Resource) { r.Subresources = []string{"*"} }), `Resources[1].Subresources[0]: Invalid value: "*"`},
		{"twice", func(o *nodeauth.Options) { o.Resources = append(o.Resources, o.Resources[1]) },
			`Resources[2]: Duplicate value: "leases.coordination.k8s.io in belay"`},
		{"write to Nodes", resource(func(r *nodeauth.Resource) { *r = nodeauth.Resource{Resource: "nodes", Verbs: []string{"patch"}} }),
			`Resources[1]: Invalid value: "nodes": may be read only, by get, list and watch: name the conditions to write in NodeConditions`},
		{"write to the status of Nodes", resource(func(r *nodeauth.Resource) { *r = status }), `Resources[1]: Invalid value: "nodes": may be read only`},
		{"the kubelet's condition", func(o *nodeauth.Options) { o.NodeConditions = []corev1.NodeConditionType{"Ready"} },
			`NodeConditions[0]: Invalid value: "Ready": belongs to the kubelet: must be a condition type of the agent's own`},
		{"condition", func(o *nodeauth.Options) { o.NodeConditions = []corev1.NodeConditionType{"A' || '"} }, `NodeConditions[0]: Invalid value: "A' || '"`},
		{"no condition", func(o *nodeauth.Options) { o.NodeConditions = []corev1.NodeConditionType{""} }, "NodeConditions[0]: Required value"},
		{"condition twice", func(o *nodeauth.Options) { o.NodeConditions = []corev1.NodeConditionType{"A", "A"} }, `NodeConditions[1]: Duplicate value: "A"`},
		{"conditions of node users", func(o *nodeauth.Options) { o.ServiceAccount, o.NodeUsers = types.NamespacedName{}, true },
			`NodeConditions: Invalid value: ["ConfigOK"]: needs a ServiceAccount: what node users write to Nodes is not guarded`},
		{"pods of node users", func(o *nodeauth.Options) { o.ServiceAccount, o.NodeUsers = types.NamespacedName{}, true },
			`NodePods: Invalid value: true: needs a ServiceAccount`},
		{"Leases of node users", func(o *nodeauth.Options) { o.NodeUsers = true },
			`Resources[1]: Invalid value: "leases.coordination.k8s.io in belay": must be a custom resource with NodeUsers`},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := usual()
			row.change(&o)
			_, err := nodeauth.Objects(o)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// TestEveryFaultIsNamed: not the first alone.
func TestEveryFaultIsNamed(t *testing.T) {
	err := nodeauth.Options{Resources: []nodeauth.Resource{{}}}.Validate()
	for _, want := range []string{"Name: Required", "ServiceAccount: Required", "Resources[0].Resource: Required", "Resources[0].Verbs: Required"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// FuzzOptionsKeepTheirPlace: whatever text gets into the options, none that passes leaves the quotes of an expression.
func FuzzOptionsKeepTheirPlace(f *testing.F) {
	f.Add("belay-agent", "belay", "agent", "belay.dev", "nodeconfigs", "agent-", "status", "ConfigOK")
	f.Add("a'b", "a' || true", `a\`, "a\n", "*", "'", "{", "]")
	f.Fuzz(func(t *testing.T, name, namespace, account, group, resource, prefix, subresource, condition string) {
		o := nodeauth.Options{
			Name: name, ServiceAccount: types.NamespacedName{Namespace: namespace, Name: account},
			Resources: []nodeauth.Resource{{
				Group: group, Resource: resource, Namespace: namespace, Prefix: prefix, Verbs: []string{"get", "update"}, Subresources: []string{subresource},
			}},
			NodeConditions: []corev1.NodeConditionType{corev1.NodeConditionType(condition)},
		}
		objects, err := nodeauth.Objects(o)
		if err != nil {
			if objects != nil {
				t.Errorf("got objects beside %v", err)
			}
			return
		}
		if all := name + namespace + account + group + resource + prefix + subresource + condition; strings.ContainsAny(all, "'\"\\`*[]{}()|&\n\r\x00 ") {
			t.Errorf("%+v passes", o)
		}
	})
}
