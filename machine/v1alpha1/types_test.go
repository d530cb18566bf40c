// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/machine/v1alpha1"
)

// objects are one of each kind.
func objects() map[string]runtime.Object {
	return map[string]runtime.Object{
		v1alpha1.MachineKind: &v1alpha1.Machine{}, v1alpha1.MachineKind + "List": &v1alpha1.MachineList{},
		v1alpha1.MachineSetKind: &v1alpha1.MachineSet{}, v1alpha1.MachineSetKind + "List": &v1alpha1.MachineSetList{},
		v1alpha1.MachineDeploymentKind: &v1alpha1.MachineDeployment{}, v1alpha1.MachineDeploymentKind + "List": &v1alpha1.MachineDeploymentList{},
		v1alpha1.MachineHealthCheckKind: &v1alpha1.MachineHealthCheck{}, v1alpha1.MachineHealthCheckKind + "List": &v1alpha1.MachineHealthCheckList{},
	}
}

// The types can be registered more than once, and then be made by kind.
func TestSchemeKnowsTheTypes(t *testing.T) {
	s := runtime.NewScheme()
	for range 2 {
		if err := v1alpha1.AddToScheme(s); err != nil {
			t.Fatal(err)
		}
	}
	for kind, want := range objects() {
		got, err := s.New(v1alpha1.GroupVersion.WithKind(kind))
		if err != nil || reflect.TypeOf(got) != reflect.TypeOf(want) {
			t.Errorf("New(%q) = %T, %v, want %T", kind, got, err, want)
		}
	}
}

// A copy shares nothing with the original, in any field.
func TestDeepCopySharesNothing(t *testing.T) {
	for kind, o := range objects() {
		fill := func(o runtime.Object) {
			for _, part := range []string{"Spec", "Status"} {
				if v := reflect.ValueOf(o).Elem().FieldByName(part); v.IsValid() {
					(&filler{t: t}).fill(v)
				}
			}
		}
		fill(o)
		again := reflect.New(reflect.TypeOf(o).Elem()).Interface().(runtime.Object)
		fill(again)
		scratch(reflect.ValueOf(o.DeepCopyObject()).Elem())
		if !reflect.DeepEqual(o, again) {
			t.Errorf("%s: the original changed with its copy: %+v", kind, o)
		}
	}
}
