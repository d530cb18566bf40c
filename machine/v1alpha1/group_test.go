// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// forMany takes out of a template what belongs to one machine alone.
func forMany(t *machine.Template) {
	t.Spec.ProviderID, t.Spec.Adopt, t.Spec.Decommission, t.Spec.Paused = "", "", false, false
}

func setOf(t *testing.T, c machine.Set) *v1alpha1.MachineSet {
	t.Helper()
	s := &v1alpha1.MachineSet{}
	if err := s.SetCore(c); err != nil {
		t.Fatal(err)
	}
	s.SetStatus(c, now())
	return s
}

func deploymentOf(t *testing.T, c machine.Deployment) *v1alpha1.MachineDeployment {
	t.Helper()
	d := &v1alpha1.MachineDeployment{}
	if err := d.SetCore(c); err != nil {
		t.Fatal(err)
	}
	d.SetStatus(c, now())
	return d
}

func checkOf(t *testing.T, c machine.HealthCheck) *v1alpha1.MachineHealthCheck {
	t.Helper()
	h := &v1alpha1.MachineHealthCheck{}
	if err := h.SetCore(c); err != nil {
		t.Fatal(err)
	}
	h.SetStatus(c, now())
	return h
}

// inUTC checks that times are written the same way too.
func inUTC(t *testing.T, want, got any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Errorf("got %+v, want times in UTC, as in %+v", got, want)
	}
}

// same checks that a conversion has lost nothing.
func same[T any](t *testing.T, want, got T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a %T came back as another one (-want +got):\n%s", want, diff)
	}
}

// Nothing that package machine knows of a set, a deployment or a health check gets lost in the API.
func TestGroupsKeepEverything(t *testing.T) {
	each(t, func(want machine.Set) {
		forMany(&want.Spec.Template)
		s := stored(t, *setOf(t, want))
		got, err := s.Core()
		same(t, want, got, err)
		inUTC(t, want, got)
	})
	each(t, func(want machine.Deployment) {
		forMany(&want.Spec.Template)
		d := stored(t, *deploymentOf(t, want))
		got, err := d.Core()
		same(t, want, got, err)
	})
	each(t, func(want machine.HealthCheck) {
		for i := range want.Status.Attempts {
			want.Status.Attempts[i].Namespace = want.Namespace
		}
		h := stored(t, *checkOf(t, want))
		got, err := h.Core()
		same(t, want, got, err)
	})
}

// The other way round: what stands in an object is what package machine sees, and the rest of the object stays as it is.
func TestGroupsInventNothing(t *testing.T) {
	f := &filler{t: t}
	var s v1alpha1.MachineSet
	f.fill(reflect.ValueOf(&s.Spec).Elem())
	f.fill(reflect.ValueOf(&s.Status).Elem())
	cs, err := s.Core()
	again := &v1alpha1.MachineSet{Spec: v1alpha1.MachineSetSpec{MachineGroup: v1alpha1.MachineGroup{Selector: s.Spec.Selector}}}
	same(t, nil, again.SetCore(cs), err)
	again.SetStatus(cs, now())
	same(t, s.Spec, again.Spec, nil)
	s.Status.Conditions, again.Status.Conditions, s.Status.Selector = nil, nil, again.Status.Selector
	same(t, s.Status, again.Status, nil)

	var d v1alpha1.MachineDeployment
	f.fill(reflect.ValueOf(&d.Spec).Elem())
	f.fill(reflect.ValueOf(&d.Status).Elem())
	d.Spec.Selector.MatchExpressions = nil
	cd, err := d.Core()
	dAgain := &v1alpha1.MachineDeployment{}
	same(t, nil, dAgain.SetCore(cd), err)
	dAgain.SetStatus(cd, now())
	same(t, d.Spec, dAgain.Spec, nil)
	d.Status.Conditions, dAgain.Status.Conditions, d.Status.Selector = nil, nil, dAgain.Status.Selector
	same(t, d.Status, dAgain.Status, nil)

	var h v1alpha1.MachineHealthCheck
	f.fill(reflect.ValueOf(&h.Spec).Elem())
	f.fill(reflect.ValueOf(&h.Status).Elem())
	h.Labels = map[string]string{"a": "b"}
	ch, err := h.Core()
	hAgain := &v1alpha1.MachineHealthCheck{Spec: v1alpha1.MachineHealthCheckSpec{Selector: h.Spec.Selector}}
	hAgain.Labels = map[string]string{"a": "b"}
	same(t, nil, hAgain.SetCore(ch), err)
	hAgain.SetStatus(ch, now())
	same(t, h.Spec, hAgain.Spec, nil)
	same(t, h.Labels, hAgain.Labels, nil)
	h.Status.Conditions, hAgain.Status.Conditions = nil, nil
	same(t, h.Status, hAgain.Status, nil)
}

// A set belongs to a deployment, and a machine to a set.
func TestOwnersHaveTheirKind(t *testing.T) {
	owner := machine.Owner{UID: "u", Name: "n"}
	s, m := setOf(t, machine.Set{Owner: owner}), machineOf(t, machine.Machine{Owner: owner})
	if s.OwnerReferences[0].Kind != "MachineDeployment" || m.OwnerReferences[0].Kind != "MachineSet" {
		t.Errorf("a set belongs to a %s and a machine to a %s, want a MachineDeployment and a MachineSet", s.OwnerReferences[0].Kind, m.OwnerReferences[0].Kind)
	}
}

// Selectors select what any other label selector does, but that an empty one selects nothing.
func TestSelectors(t *testing.T) {
	expression := func(key, operator string, values ...v1alpha1.LabelValue) v1alpha1.LabelRequirement {
		return v1alpha1.LabelRequirement{Key: key, Operator: v1alpha1.LabelOperator(operator), Values: values}
	}
	for _, c := range []struct {
		name     string
		selector v1alpha1.MachineSelector
		labels   map[string]string
		want     bool
	}{
		{"empty", v1alpha1.MachineSelector{}, map[string]string{"a": "b"}, false},
		{"equal", v1alpha1.MachineSelector{MatchLabels: map[string]v1alpha1.LabelValue{"a": "b"}}, map[string]string{"a": "b", "c": "d"}, true},
		{"other", v1alpha1.MachineSelector{MatchLabels: map[string]v1alpha1.LabelValue{"a": "b"}}, map[string]string{"a": "c"}, false},
		{"in", v1alpha1.MachineSelector{MatchExpressions: []v1alpha1.LabelRequirement{expression("a", "In", "b", "c")}}, map[string]string{"a": "c"}, true},
		{"not in", v1alpha1.MachineSelector{MatchExpressions: []v1alpha1.LabelRequirement{expression("a", "NotIn", "b")}}, map[string]string{"a": "b"}, false},
		{"exists", v1alpha1.MachineSelector{MatchExpressions: []v1alpha1.LabelRequirement{expression("a", "Exists")}}, map[string]string{"a": ""}, true},
		{"exists not", v1alpha1.MachineSelector{MatchExpressions: []v1alpha1.LabelRequirement{expression("a", "DoesNotExist")}}, map[string]string{"a": ""}, false},
	} {
		matches, err := c.selector.Matches()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := matches(c.labels); got != c.want {
			t.Errorf("%s: %v is selected: %t, want %t", c.name, c.labels, got, c.want)
		}
	}
	if _, err := (&v1alpha1.MachineSelector{MatchExpressions: []v1alpha1.LabelRequirement{expression("a", "Like", "b")}}).Matches(); err == nil {
		t.Error("an operator that does not exist has no error")
	}
}

// The selector of the scale subresource is that of the spec.
func TestScaleHasTheSelector(t *testing.T) {
	s := &v1alpha1.MachineSet{}
	s.Spec.Selector = v1alpha1.MachineSelector{
		MatchLabels:      map[string]v1alpha1.LabelValue{"b": "c", "a": "b"},
		MatchExpressions: []v1alpha1.LabelRequirement{{Key: "d", Operator: "NotIn", Values: []v1alpha1.LabelValue{"e", "f"}}},
	}
	s.SetStatus(machine.Set{}, now())
	if got, want := s.Status.Selector, "a=b,b=c,d notin (e,f)"; got != want {
		t.Errorf("got selector %q, want %q", got, want)
	}
	d := &v1alpha1.MachineDeployment{Spec: v1alpha1.MachineDeploymentSpec{MachineGroup: v1alpha1.MachineGroup{Selector: s.Spec.Selector}}}
	if d.SetStatus(machine.Deployment{}, now()); d.Status.Selector != s.Status.Selector {
		t.Errorf("a deployment has selector %q, want %q", d.Status.Selector, s.Status.Selector)
	}
}

// A history of none is not the default.
func TestHistoryLimit(t *testing.T) {
	limit := func(n int32) *int32 { return &n }
	for _, c := range []struct {
		limit *int32
		want  int
	}{{nil, 0}, {limit(0), -1}, {limit(3), 3}} {
		d := &v1alpha1.MachineDeployment{Spec: v1alpha1.MachineDeploymentSpec{HistoryLimit: c.limit}}
		got, err := d.Core()
		if err != nil || got.Spec.History != c.want {
			t.Errorf("got history %d and %v, want %d", got.Spec.History, err, c.want)
		}
		if again := deploymentOf(t, got).Spec.HistoryLimit; !reflect.DeepEqual(again, c.limit) {
			t.Errorf("the limit came back as %v, want %v", again, c.limit)
		}
	}
}

// What can't be converted to what package machine sees has an error that names the field.
func TestGroupsNameTheField(t *testing.T) {
	bad := intstr.FromString("half")
	k := metav1.ObjectMeta{Namespace: "ns", Name: "g"}
	requires := func(operator v1alpha1.LabelOperator) v1alpha1.MachineSelector {
		return v1alpha1.MachineSelector{MatchExpressions: []v1alpha1.LabelRequirement{{Key: "a", Operator: operator}}}
	}
	set := func(g v1alpha1.MachineGroup) error {
		_, err := (&v1alpha1.MachineSet{ObjectMeta: k, Spec: v1alpha1.MachineSetSpec{MachineGroup: g}}).Core()
		return err
	}
	deployment := func(s v1alpha1.MachineDeploymentSpec) error {
		_, err := (&v1alpha1.MachineDeployment{ObjectMeta: k, Spec: s}).Core()
		return err
	}
	check := func(s v1alpha1.MachineHealthCheckSpec) error {
		_, err := (&v1alpha1.MachineHealthCheck{ObjectMeta: k, Spec: s}).Core()
		return err
	}
	labels := v1alpha1.TemplateMetadata{Labels: map[string]v1alpha1.LabelValue{"a b": ""}}
	node := v1alpha1.MachineConfig{NodeMetadata: &v1alpha1.NodeMetadata{Annotations: map[string]string{"/": ""}}}
	begins(t, []refusal{
		{set(v1alpha1.MachineGroup{Template: v1alpha1.MachineTemplate{Metadata: labels}}), `machine set "ns/g": spec.template.metadata.labels: key "a b"`},
		{set(v1alpha1.MachineGroup{Template: v1alpha1.MachineTemplate{Spec: node}}), `machine set "ns/g": spec.template.spec.nodeMetadata.annotations: key "/"`},
		{set(v1alpha1.MachineGroup{Selector: requires("Like")}), `machine set "ns/g": spec.selector: "Like" is not a valid label selector operator`},
		{deployment(v1alpha1.MachineDeploymentSpec{MachineGroup: v1alpha1.MachineGroup{Selector: requires("Exists")}}),
			`machine deployment "ns/g": spec.selector has 1 matchExpressions`},
		{deployment(v1alpha1.MachineDeploymentSpec{MachineGroup: v1alpha1.MachineGroup{Selector: requires("Like")}}),
			`machine deployment "ns/g": spec.selector: "Like"`},
		{deployment(v1alpha1.MachineDeploymentSpec{Strategy: &v1alpha1.Strategy{MaxSurge: &bad}}), `machine deployment "ns/g": spec.strategy.maxSurge: `},
		{deployment(v1alpha1.MachineDeploymentSpec{Strategy: &v1alpha1.Strategy{MaxUnavailable: &bad}}),
			`machine deployment "ns/g": spec.strategy.maxUnavailable: `},
		{check(v1alpha1.MachineHealthCheckSpec{MaxUnhealthy: &bad}), `machine health check "ns/g": spec.maxUnhealthy: `},
		{check(v1alpha1.MachineHealthCheckSpec{Selector: requires("Like")}), `machine health check "ns/g": spec.selector: "Like"`},
	})
}

// What an object can't have has an error that names it, and leaves the object as it was.
func TestGroupsRefuseWhatNoObjectHas(t *testing.T) {
	key := machine.Key{Namespace: "ns", Name: "g"}
	was := func() *v1alpha1.MachineSet {
		return &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "as-it-was"}}
	}
	s := was()
	set := func(c machine.SetSpec) error { return s.SetCore(machine.Set{Key: key, Spec: c}) }
	check := func(c machine.HealthSpec) error {
		return (&v1alpha1.MachineHealthCheck{}).SetCore(machine.HealthCheck{Key: key, Spec: c})
	}
	template := func(c machine.Spec) machine.SetSpec { return machine.SetSpec{Template: machine.Template{Spec: c}} }
	begins(t, []refusal{
		{set(machine.SetSpec{Replicas: -1}), `machine set "ns/g": replicas is -1: want 0 to 2147483647`},
		{set(machine.SetSpec{Replicas: math.MaxInt32 + 1}), `machine set "ns/g": replicas is 2147483648`},
		{set(machine.SetSpec{MaxProvisioning: -1}), `machine set "ns/g": max provisioning is -1`},
		{set(template(machine.Spec{Adopt: "t"})), `machine set "ns/g": template: ProviderID "", Adopt "t"`},
		{set(template(machine.Spec{ProviderID: "p"})), `machine set "ns/g": template: ProviderID "p"`},
		{set(template(machine.Spec{Paused: true})), `machine set "ns/g": template: ProviderID "", Adopt "", Decommission false, Paused true`},
		{set(template(machine.Spec{Decommission: true})), `machine set "ns/g": template: ProviderID "", Adopt "", Decommission true`},
		{set(template(machine.Spec{Desired: provider.Desired{Config: []byte("1")}})), `machine set "ns/g": template: config: want a JSON object`},
		{(&v1alpha1.MachineDeployment{}).SetCore(machine.Deployment{Key: key, Spec: machine.DeploymentSpec{Replicas: -1}}),
			`machine deployment "ns/g": replicas is -1`},
		{check(machine.HealthSpec{MaxLineage: -1}), `machine health check "ns/g": max lineage is -1`},
		{check(machine.HealthSpec{Ladder: []machine.Rung{{Tries: -1}}}), `machine health check "ns/g": tries of a rung is -1`},
	})
	if !reflect.DeepEqual(s, was()) {
		t.Errorf("after an error the object is %+v, want it as it was", s)
	}
}

// A refusal is an error, and how it should begin.
type refusal struct {
	err  error
	want string
}

func begins(t *testing.T, all []refusal) {
	t.Helper()
	for _, c := range all {
		if c.err == nil || !strings.HasPrefix(c.err.Error(), c.want) {
			t.Errorf("got error %v, want one that begins with %q", c.err, c.want)
		}
	}
}
