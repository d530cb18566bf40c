// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/v1alpha1"
)

func machineSets(t *testing.T) *served {
	return serve(t, v1alpha1.MachineSetKind, v1alpha1.MachineSetsResource)
}

func machineDeployments(t *testing.T) *served {
	return serve(t, v1alpha1.MachineDeploymentKind, v1alpha1.MachineDeploymentsResource)
}

func healthChecks(t *testing.T) *served {
	return serve(t, v1alpha1.MachineHealthCheckKind, v1alpha1.MachineHealthChecksResource)
}

// equal is a group of machines with one label.
const equal = "selector: {matchLabels: {app: web}}\ntemplate: {metadata: {labels: {app: web, more: x}}}\n"

// groupRows are specs of sets, which are those of deployments too.
func groupRows() [][2]string {
	rows := [][2]string{
		{equal, ""},
		{equal + "replicas: 3", ""},
		{equal + "replicas: -1", "greater than or equal to 0"},
		{equal + "replicas: 3000000000", "2147483647"},
		{equal + "deleteOrder: Cheapest", "Unsupported value"},
		{equal + "deleteOrder: Oldest\nmaxProvisioning: 2\nminReady: 1m\npaused: true\nreplicas: 3", ""},
		{equal + "maxProvisioning: 0", "greater than or equal to 1"},
		{equal + "minReady: 0s", "must be a duration such as 1m, above 0"},
		{equal + "size: 1", unknown},
		{"selector: {matchLabels: {app: web}}", "template: Required value"},
		{"template: {}", "selector: Required value"},
		{"selector: {matchLabels: {app: web}}\ntemplate: {}", "must have all of selector.matchLabels"},
		{"selector: {matchLabels: {app: web}}\ntemplate: {metadata: {labels: {app: other}}}", "must have all of selector.matchLabels"},
		{"selector: {matchLabels: {app: web, x: z}}\ntemplate: {metadata: {labels: {app: web}}}", "must have all of selector.matchLabels"},
		{"selector: {matchLabels: {}}\ntemplate: {metadata: {labels: {app: web}}}", "selector must have matchLabels"},
		{"selector: {matchLabels: {app: 'x y'}}\ntemplate: {metadata: {labels: {app: 'x y'}}}", "should match"},
		{selecting("{key: a, operator: In}"), "values must be set for In and NotIn"},
		{selecting("{key: a, operator: Exists, values: [b]}"), "values must be set for In and NotIn"},
		{selecting("{key: a, operator: Like, values: [b]}"), "Unsupported value"},
		{"selector: {matchLabels: {app: web}}\ntemplate: {metadata: {labels: {app: web}, name: x}}", unknown},
		{withTemplate("providerID: 'acme:///a/b'"), unknown},
		{withTemplate("adopt: t-1"), unknown},
		{withTemplate("paused: true"), unknown},
	}
	for _, row := range configRows() {
		rows = append(rows, [2]string{withTemplate(row[0]), row[1]})
	}
	return rows
}

// selecting is a group with one more requirement.
func selecting(requirement string) string {
	return strings.Replace(equal, "app: web}}", "app: web}, matchExpressions: ["+requirement+"]}", 1)
}

// withTemplate is a group whose template has a spec.
func withTemplate(spec string) string {
	return strings.Replace(equal, "more: x}}}", "more: x}}, spec: {"+spec+"}}", 1)
}

// The server refuses sets that contradict themselves, and says what would be right.
func TestServerChecksMachineSets(t *testing.T) {
	s := machineSets(t)
	s.rows(append(groupRows(), [2]string{selecting("{key: a, operator: In, values: [b]}, {key: c, operator: Exists}"), ""}))
	u := s.create("set", equal)
	if n, found, err := unstructured.NestedInt64(u.Object, "spec", "replicas"); n != 0 || !found || err != nil {
		t.Errorf("without replicas a set has %d, %t, %v, want 0 machines that the autoscaler can read", n, found, err)
	}
	s.judge("another selector", s.merge("set", "spec: {selector: {matchLabels: {more: x}}}"), "selector must not change")
	s.judge("another template", s.merge("set", "spec: {template: {spec: {versions: {kubelet: v1.36.3}}}}"), "")
	for _, c := range []struct{ patch, want string }{
		{"status: {serial: 4, replicas: 1}", ""},
		{"status: {serial: 3}", "status.serial must not decrease"},
		{"status: {serial: null}", "status.serial must not decrease"},
		{"status: {serial: 5, reserved: [{name: a, heir: {of: b, lineage: 1}}], heirs: [{of: c, lineage: 2}]}", ""},
	} {
		s.judge(c.patch, s.merge("set", c.patch, "status"), c.want)
	}
	s.eachRule()
}

const fromZero = " must be a number of machines from 0 on, or a percentage from 0% to 100%"

// The server refuses deployments that contradict themselves, and says what would be right.
func TestServerChecksMachineDeployments(t *testing.T) {
	s := machineDeployments(t)
	s.rows(slices.Concat(groupRows(), [][2]string{
		{selecting("{key: a, operator: Exists}"), "selector of a MachineDeployment must have matchLabels only"},
		{equal + "strategy: {type: Recreate}", "Unsupported value"},
		{equal + "strategy: {type: InPlace, maxSurge: 0, maxUnavailable: '0%'}", ""},
		{equal + "strategy: {maxSurge: '100%', maxUnavailable: 2147483647}", ""},
		{equal + "strategy: {type: OnDelete}", ""},
		{equal + "strategy: {type: OnDelete, maxSurge: 1}", "maxSurge and maxUnavailable do not go with type: OnDelete"},
		{equal + "strategy: {maxSurge: -1}", "maxSurge" + fromZero},
		{equal + "strategy: {maxSurge: '3'}", "maxSurge" + fromZero},
		{equal + "strategy: {maxUnavailable: '101%'}", "maxUnavailable" + fromZero},
		{equal + "strategy: {maxUnavailable: 3000000000}", "maxUnavailable" + fromZero},
		{equal + "progressDeadline: 0s", "must be a duration such as 30m, above 0"},
		{equal + "progressDeadline: 1h\nhistoryLimit: 0", ""},
		{equal + "historyLimit: -1", "greater than or equal to 0"},
	}))
	s.create("deployment", equal)
	s.judge("another selector", s.merge("deployment", "spec: {selector: {matchLabels: {more: x}}}"), "selector must not change")
	s.judge("another template", s.merge("deployment", "spec: {template: {spec: {versions: {kubelet: v1.36.3}}}}"), "")
	s.eachRule("values must be set for In and NotIn, and for nothing else") // a deployment has none
}

// The server refuses health checks that contradict themselves, and says what would be right.
func TestServerChecksHealthChecks(t *testing.T) {
	s := healthChecks(t)
	const one = "selector: {matchLabels: {app: web}}\n"
	s.rows([][2]string{
		{one, ""},
		{"{}", "selector: Required value"},
		{"selector: {}", "selector must have matchLabels or matchExpressions"},
		{"selector: {matchExpressions: []}", "selector must have matchLabels or matchExpressions"},
		{"selector: {matchExpressions: [{key: a, operator: NotIn}]}", "values must be set for In and NotIn"},
		{"selector: {matchExpressions: [{key: a, operator: Exists}]}", ""},
		{one + "unhealthy: []", "at least 1 items"},
		{one + "unhealthy: [{for: 0s, condition: {type: Ready, status: 'False'}}, {for: 5m, phase: Failed}]", ""},
		{one + "unhealthy: [{condition: {type: Ready, status: 'False'}}]", "for: Required value"},
		{one + "unhealthy: [{for: -1s, phase: Failed}]", "must be a duration such as 5m, and not negative"},
		{one + "unhealthy: [{for: 1s}]", "exactly one of condition and phase must be set"},
		{one + "unhealthy: [{for: 1s, phase: Failed, condition: {type: Ready, status: 'False'}}]", "exactly one of condition and phase must be set"},
		{one + "unhealthy: [{for: 1s, phase: Sick}]", "Unsupported value"},
		{one + "unhealthy: [{for: 1s, condition: {type: Ready, status: 'No'}}]", "Unsupported value"},
		{one + "startupTimeout: 0s", "must be a duration such as 10m, above 0"},
		{one + "cooldown: 0s", "must be a duration such as 10m, above 0"},
		{one + "proven: 0s", "must be a duration such as 6h, above 0"},
		{one + "startupTimeout: 5m\ncooldown: 5m\nproven: 1h\nmaxLineage: 2\npaused: true", ""},
		{one + "maxUnhealthy: 0", "maxUnhealthy must be a number of machines from 1 on"},
		{one + "maxUnhealthy: '0%'", "maxUnhealthy must be a number of machines from 1 on"},
		{one + "maxUnhealthy: '40%'", ""},
		{one + "maxLineage: 0", "greater than or equal to 1"},
		{one + "ladder: []", "at least 1 items"},
		{one + "ladder: [{remedy: RestartAgent}, {remedy: Reboot, tries: 2, wait: 5m}, {remedy: Quarantine}]", ""},
		{one + "ladder: [{remedy: Pray}]", "Unsupported value"},
		{one + "ladder: [{remedy: Reboot, tries: 0}]", "greater than or equal to 1"},
		{one + "ladder: [{remedy: Reboot, wait: 0s}]", "must be a duration such as 10m, above 0"},
	})
	s.eachRule()
}

// What the server gives back of sets, deployments and health checks is what was written, status included: it prunes nothing.
func TestServerKeepsGroups(t *testing.T) {
	keep(t, machineSets(t), equal, func(s *v1alpha1.MachineSet) error {
		c, err := s.Core()
		(&filler{t: t}).fill(reflect.ValueOf(&c.Status).Elem())
		s.SetStatus(c, now())
		return err
	})
	strategy := "strategy: {type: InPlace, maxSurge: 1, maxUnavailable: '10%'}\nhistoryLimit: 0\nprogressDeadline: 1h"
	keep(t, machineDeployments(t), equal+strategy, func(d *v1alpha1.MachineDeployment) error {
		c, err := d.Core()
		(&filler{t: t}).fill(reflect.ValueOf(&c.Status).Elem())
		d.SetStatus(c, now())
		return err
	})
	keep(t, healthChecks(t), "selector: {matchLabels: {app: web}}", func(h *v1alpha1.MachineHealthCheck) error {
		c, err := h.Core()
		(&filler{t: t}).fill(reflect.ValueOf(&c.Status).Elem())
		for i := range c.Status.Attempts {
			c.Status.Attempts[i].Kind = machine.RemedyReboot
		}
		h.SetStatus(c, now())
		return err
	})
}

// keep stores an object and its status, and compares what the server gives back.
func keep[T any](t *testing.T, s *served, spec string, status func(*T) error) {
	t.Helper()
	o := typed[T](t, s.create("kept", spec))
	if err := status(o); err != nil {
		t.Fatal(err)
	}
	u, err := s.UpdateStatus(deadline(t), untyped(t, o), metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	got := typed[T](t, u)
	for _, o := range []*T{o, got} {
		meta := reflect.ValueOf(o).Elem().FieldByName("ObjectMeta")
		meta.FieldByName("ManagedFields").SetZero()
		meta.FieldByName("ResourceVersion").SetZero()
	}
	same(t, o, got, nil)
}

// scales is a client of the scale subresource, as kubectl scale and the autoscaler have it.
func scales(t *testing.T) scale.ScalesGetter {
	t.Helper()
	config := shared.Env(t).Config()
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	client, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(d))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// R-MA-11: the scale subresource of sets and deployments reads what the status says, and writes spec.replicas, also to none.
func TestScale(t *testing.T) {
	for _, s := range []*served{machineSets(t), machineDeployments(t)} {
		resource := schema.GroupResource{Group: "belay.dev", Resource: strings.ToLower(s.kind) + "s"}
		s.create("scaled", equal+"replicas: 3")
		if err := s.merge("scaled", "status: {replicas: 2, selector: app=web}", "status"); err != nil {
			t.Fatal(err)
		}
		client := scales(t).Scales(s.namespace)
		got, err := client.Get(deadline(t), resource, "scaled", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Spec.Replicas != 3 || got.Status != (autoscalingv1.ScaleStatus{Replicas: 2, Selector: "app=web"}) {
			t.Errorf("%s: the scale is %+v, %+v, want 3 of which there are 2", s.kind, got.Spec, got.Status)
		}
		for _, n := range []int32{5, 0} {
			got.Spec.Replicas = n
			if got, err = client.Update(deadline(t), resource, got, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			u, err := s.Get(deadline(t), "scaled", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if replicas, found, err := unstructured.NestedInt64(u.Object, "spec", "replicas"); replicas != int64(n) || !found || err != nil {
				t.Errorf("%s: scaled to %d it has %d, %t, %v", s.kind, n, replicas, found, err)
			}
		}
	}
}
