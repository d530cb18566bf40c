// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/belayproject/belay/configsync/v1alpha1"
)

// TestSchemeKnowsTheTypes shows that the types can be registered more than once and then be made by kind.
func TestSchemeKnowsTheTypes(t *testing.T) {
	s := runtime.NewScheme()
	for range 2 {
		if err := v1alpha1.AddToScheme(s); err != nil {
			t.Fatal(err)
		}
	}
	for kind, want := range map[string]runtime.Object{
		v1alpha1.NodeConfigKind: &v1alpha1.NodeConfig{}, v1alpha1.NodeConfigKind + "List": &v1alpha1.NodeConfigList{},
	} {
		got, err := s.New(v1alpha1.GroupVersion.WithKind(kind))
		if err != nil || reflect.TypeOf(got) != reflect.TypeOf(want) {
			t.Errorf("New(%q) = %T, %v, want %T", kind, got, err, want)
		}
	}
}

// TestSourceIsOptional covers R-CS-11: nil and set are both accepted, and stay what they are.
func TestSourceIsOptional(t *testing.T) {
	for _, want := range []v1alpha1.NodeConfigSpec{
		{},
		{Source: &v1alpha1.NodeConfigSource{}},
		{Source: &v1alpha1.NodeConfigSource{ConfigMapRef: &v1alpha1.ConfigMapRef{Namespace: "a", Name: "b", UID: "c"}}},
	} {
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got v1alpha1.NodeConfigSpec
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s came back as %+v, want %+v", raw, got, want)
		}
	}
}

// TestUnknownFieldsAreAccepted covers R-CS-22 and the lesson that strict decoding of newer records breaks older nodes: what a later
// version adds doesn't keep this one from reading the rest.
// L-CS-11, L-CS-14.
func TestUnknownFieldsAreAccepted(t *testing.T) {
	raw := `{"source":{"configMapRef":{"namespace":"a","name":"b","uid":"c","later":{"x":1}},"laterRef":null},"more":true}`
	var got v1alpha1.NodeConfigSpec
	if err := json.Unmarshal([]byte(raw), &got); err != nil {
		t.Fatal(err)
	}
	if want := (v1alpha1.ConfigMapRef{Namespace: "a", Name: "b", UID: "c"}); got.Source == nil || *got.Source.ConfigMapRef != want {
		t.Errorf("got %+v, want the reference %+v", got.Source, want)
	}
}

// TestDeepCopySharesNothing shows that a change of a copy leaves the original alone.
func TestDeepCopySharesNothing(t *testing.T) {
	nc := v1alpha1.NodeConfig{
		Spec: v1alpha1.NodeConfigSpec{Source: &v1alpha1.NodeConfigSource{ConfigMapRef: &v1alpha1.ConfigMapRef{Name: "x"}}},
		Status: v1alpha1.NodeConfigStatus{
			Rejected: []v1alpha1.RejectedConfig{{Reason: "x"}}, Conditions: []metav1.Condition{{Type: "x"}},
			Trial: &v1alpha1.Trial{Ignored: []string{"x"}},
		},
	}
	c := nc.DeepCopy()
	c.Spec.Source.ConfigMapRef.Name, c.Status.Rejected[0].Reason, c.Status.Conditions[0].Type, c.Status.Trial.Ignored[0] = "", "", "", ""
	if s := nc.Status; nc.Spec.Source.ConfigMapRef.Name != "x" || s.Rejected[0].Reason != "x" || s.Conditions[0].Type != "x" || s.Trial.Ignored[0] != "x" {
		t.Errorf("the original changed with its copy: %+v", nc)
	}
}
