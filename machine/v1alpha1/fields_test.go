// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// written reads an object from YAML, in which nothing may be unknown.
func written[T any](t *testing.T, text string) *T {
	t.Helper()
	o := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func indented(text string) string {
	var spec any
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		return err.Error()
	}
	raw, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// everySpec is what package machine sees of a spec with everything.
func everySpec() machine.Spec {
	return machine.Spec{
		Desired: provider.Desired{
			Config: []byte(`{"apiVersion":"acme.dev/v1","kind":"Config","nested":{"list":[{"deep":true}]}}`),
			Versions: provider.Versions{
				Kubelet: "v1.36.3", Runtime: provider.Runtime{Name: "containerd", Version: "2.1.4"}, Other: map[string]string{"kernel": "6.12.9"},
			},
			Roles: []string{"control-plane", "etcd"},
			Node: provider.NodeSettings{
				Labels: map[string]string{"example.com/pool": "web", "empty": ""}, Annotations: map[string]string{"example.com/x": "any text"},
				Taints: []provider.Taint{{Key: "example.com/a", Value: "b", Effect: "NoSchedule"}, {Key: "example.com/a", Effect: "NoExecute"}},
			},
		},
		ProviderID: "acme:///zone-a/row", Bootstrap: "join", Credentials: "cloud",
		ConfigSource: []byte(`{"configMapRef":{"namespace":"configs","name":"pool-a","uid":"u-1","key":"kubelet"}}`),
		UpdatePolicy: machine.ManualUpdate,
		Deletion: machine.Deletion{
			DrainTimeout: time.Hour, NodeTimeout: 5 * time.Minute, Disks: provider.Retain, RetainFor: 720 * time.Hour,
			Hooks: []machine.Hook{
				{Name: "etcd", Owner: "etcd-operator", Phase: machine.BeforeStop, Timeout: 10 * time.Minute},
				{Name: "note", Owner: "me", Phase: machine.BeforeDrain},
			},
		},
		Decommission: true, Paused: true, Adopt: "c1-u1-1",
	}
}

// R-MA-17, R-MA-18: each field of the prototype has its place: metadata, labels and all taints of the Node, roles, versions, also of packages that the API
// does not know, a config source, secrets by name alone.
func TestMachineFieldsHaveTheirPlace(t *testing.T) {
	c := core(t, written[v1alpha1.Machine](t, indented(everything)))
	if diff := cmp.Diff(machine.Machine{Spec: everySpec()}, c); diff != "" {
		t.Errorf("a machine (-want +got):\n%s", diff)
	}
}

// The same for sets, deployments and health checks.
func TestGroupFieldsHaveTheirPlace(t *testing.T) {
	const group = equal + "replicas: 3\ndeleteOrder: Newest\nmaxProvisioning: 2\nminReady: 1m\npaused: true\n"
	template := machine.Template{Labels: map[string]string{"app": "web", "more": "x"}}
	set, err := written[v1alpha1.MachineSet](t, indented(group)).Core()
	same(t, machine.Set{Spec: machine.SetSpec{
		Replicas: 3, Selector: map[string]string{"app": "web"}, Template: template, Order: machine.NewestFirst, MaxProvisioning: 2, MinReady: time.Minute,
		Paused: true,
	}}, set, err)
	deployment, err := written[v1alpha1.MachineDeployment](t,
		indented(group+"strategy: {type: InPlace, maxSurge: 2, maxUnavailable: '10%'}\nprogressDeadline: 1h\nhistoryLimit: 4")).Core()
	same(t, machine.Deployment{Spec: machine.DeploymentSpec{
		Replicas: 3, Selector: map[string]string{"app": "web"}, Template: template, Order: machine.NewestFirst, MaxProvisioning: 2, MinReady: time.Minute,
		Paused: true, Deadline: time.Hour, History: 4,
		Strategy: machine.Strategy{Type: machine.InPlace, MaxSurge: machine.Amount{Value: 2}, MaxUnavailable: machine.Amount{Value: 10, Percent: true}},
	}}, deployment, err)
	check, err := written[v1alpha1.MachineHealthCheck](t, indented(`
selector: {matchLabels: {app: web}}
unhealthy: [{condition: {type: Ready, status: "False"}, for: 5m}, {phase: Failed, for: 0s}]
startupTimeout: 2m
maxUnhealthy: 40%
ladder: [{remedy: Reboot, tries: 2, wait: 3m}, {remedy: Replace}]
cooldown: 4m
maxLineage: 5
proven: 6h
paused: true
`)).Core()
	same(t, machine.HealthCheck{Spec: machine.HealthSpec{
		Selector:       map[string]string{"app": "web"},
		Unhealthy:      []machine.UnhealthyWhen{{Condition: "Ready", Status: "False", For: 5 * time.Minute}, {Phase: machine.PhaseFailed}},
		Ladder:         []machine.Rung{{Kind: machine.RemedyReboot, Tries: 2, Wait: 3 * time.Minute}, {Kind: machine.RemedyReplace}},
		StartupTimeout: 2 * time.Minute, MaxUnhealthy: machine.Amount{Value: 40, Percent: true}, Cooldown: 4 * time.Minute, MaxLineage: 5,
		Proven: 6 * time.Hour, Paused: true,
	}}, check, err)
}

// R-MA-17: the config source of a machine is one that the server takes for a NodeConfig, and that comes back from it as it was.
func TestConfigSourceIsThatOfANodeConfig(t *testing.T) {
	c := core(t, typed[v1alpha1.Machine](t, machines(t).create("bridged", everything)))
	env := shared.Env(t)
	if err := env.InstallCRDs(deadline(t), configv1alpha1.CRDs()...); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	raw := `{"apiVersion":"belay.dev/v1alpha1","kind":"NodeConfig","metadata":{"name":"bridged"},"spec":{"source":` + string(c.Spec.ConfigSource) + `}}`
	if err := json.Unmarshal([]byte(raw), &u.Object); err != nil {
		t.Fatal(err)
	}
	u, err = client.Resource(configv1alpha1.NodeConfigsResource).
		Create(deadline(t), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	source := typed[configv1alpha1.NodeConfig](t, u).Spec.Source
	back, err := json.Marshal(source)
	if err != nil || string(back) != string(c.Spec.ConfigSource) || source.ConfigMapRef.UID != "u-1" {
		t.Errorf("the NodeConfig has source %s, %v, want %s", back, err, c.Spec.ConfigSource)
	}
}

// FuzzCore: whatever stands in an object, Core gives a machine or an error, and what it gives can be stored and comes back as it is.
func FuzzCore(f *testing.F) {
	for _, text := range []string{everything, "{}", "providerConfig: []", "configSource: {configMapRef: {uid: a}}", "deletion: {hooks: [{timeout: 1s}]}"} {
		f.Add([]byte(indented(text)), []byte("{}"))
	}
	f.Add([]byte("{}"), []byte(`{"step":{"since":"2026-03-02T12:00:00Z"},"instance":{},"update":{"plan":{}},"release":{},"retained":[{}],"failure":{}}`))
	f.Fuzz(func(t *testing.T, object, status []byte) {
		m := &v1alpha1.Machine{}
		if json.Unmarshal(object, m) != nil || json.Unmarshal(status, &m.Status) != nil {
			return
		}
		first, err := m.Core()
		if err != nil {
			return
		}
		again := &v1alpha1.Machine{}
		if err := again.SetCore(first); err != nil {
			return // a config or an owner that the server would refuse
		}
		again.SetStatus(first, nil, now())
		if got, err := again.Core(); err != nil || first.Spec.Digest() != got.Spec.Digest() {
			t.Errorf("%s came back with %v (-want +got):\n%s", object, err, cmp.Diff(first, got))
		}
	})
}
