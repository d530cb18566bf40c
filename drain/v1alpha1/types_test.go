// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/v1alpha1"
)

// The types can be registered more than once, and then be made by kind.
func TestSchemeKnowsTheTypes(t *testing.T) {
	s := runtime.NewScheme()
	for range 2 {
		if err := v1alpha1.AddToScheme(s); err != nil {
			t.Fatal(err)
		}
	}
	for kind, want := range map[string]runtime.Object{
		v1alpha1.NodeMaintenanceKind:          &v1alpha1.NodeMaintenance{},
		v1alpha1.NodeMaintenanceKind + "List": &v1alpha1.NodeMaintenanceList{},
	} {
		got, err := s.New(v1alpha1.GroupVersion.WithKind(kind))
		if err != nil || reflect.TypeOf(got) != reflect.TypeOf(want) {
			t.Errorf("New(%q) = %T, %v, want %T", kind, got, err, want)
		}
	}
}

// An object with all fields comes back from JSON as it was, and a copy shares nothing with it.
func TestObjectsComeBack(t *testing.T) {
	full := func() *v1alpha1.NodeMaintenance {
		at, share := metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), intstr.FromString("25%")
		return &v1alpha1.NodeMaintenance{Spec: v1alpha1.NodeMaintenanceSpec{
			NodeSelector: &v1alpha1.NodeSelector{
				MatchLabels:      map[string]v1alpha1.LabelValue{"rack": "r1"},
				MatchExpressions: []v1alpha1.LabelRequirement{{Key: "gpu", Operator: "In", Values: []v1alpha1.LabelValue{"yes"}}},
			},
			Mode: "Drain", Reason: "fan", Windows: []v1alpha1.Window{{From: &at, Until: &at}}, Deadline: &at,
			MaxConcurrent: &share,
			Policy:        &drain.Policy{TierDeadline: time.Minute, Rules: []drain.Rule{{Name: "r", Namespaces: []string{"a"}}}},
		}, Status: v1alpha1.NodeMaintenanceStatus{
			Nodes:      []v1alpha1.NodeResult{{Name: "n1", Phase: "Drained"}},
			Preview:    &v1alpha1.Preview{BlockedPods: []v1alpha1.BlockedPod{{Name: "p"}}},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady}},
		}}
	}
	text, err := json.Marshal(full())
	if err != nil {
		t.Fatal(err)
	}
	var back v1alpha1.NodeMaintenance
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&back)
	if err != nil || string(again) != string(text) {
		t.Errorf("%s, %v, want %s", again, err, text)
	}
	o := full()
	c := o.DeepCopy()
	c.Spec.NodeSelector.MatchLabels["rack"], c.Spec.NodeSelector.MatchExpressions[0].Values[0] = "x", "x"
	c.Spec.Windows[0].From.Time, c.Spec.Policy.Rules[0].Namespaces[0] = time.Time{}, "x"
	c.Status.Nodes[0].Name, c.Status.Preview.BlockedPods[0].Name, c.Status.Conditions[0].Type = "x", "x", "x"
	if !reflect.DeepEqual(o, full()) {
		t.Errorf("the original has changed with its copy: %+v", o)
	}
}
