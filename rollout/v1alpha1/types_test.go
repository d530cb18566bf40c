// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/rollout/v1alpha1"
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
		v1alpha1.NodeShadowKind: &v1alpha1.NodeShadow{}, v1alpha1.NodeShadowKind + "List": &v1alpha1.NodeShadowList{},
		v1alpha1.DisruptionLedgerKind: &v1alpha1.DisruptionLedger{}, v1alpha1.DisruptionLedgerKind + "List": &v1alpha1.DisruptionLedgerList{},
		v1alpha1.RevisionKind: &v1alpha1.Revision{}, v1alpha1.RevisionKind + "List": &v1alpha1.RevisionList{},
		v1alpha1.RolloutKind: &v1alpha1.Rollout{}, v1alpha1.RolloutKind + "List": &v1alpha1.RolloutList{},
	} {
		got, err := s.New(v1alpha1.GroupVersion.WithKind(kind))
		if err != nil || reflect.TypeOf(got) != reflect.TypeOf(want) {
			t.Errorf("New(%q) = %T, %v, want %T", kind, got, err, want)
		}
	}
}

// A copy shares nothing with the original, in any field.
func TestDeepCopySharesNothing(t *testing.T) {
	for _, o := range []runtime.Object{&v1alpha1.NodeShadow{}, &v1alpha1.DisruptionLedger{}, &v1alpha1.Revision{}, &v1alpha1.Rollout{}} {
		n := 0
		fill(t, reflect.ValueOf(o).Elem().FieldByName("Spec"), &n)
		c := o.DeepCopyObject()
		n = 1000
		fill(t, reflect.ValueOf(c).Elem().FieldByName("Spec"), &n) // over what is there
		again := reflect.New(reflect.TypeOf(o).Elem())
		n = 0
		fill(t, again.Elem().FieldByName("Spec"), &n)
		if !reflect.DeepEqual(o, again.Interface()) {
			t.Errorf("%T: the original changed with its copy: %+v", o, o)
		}
	}
}

// R-RO-33: a digest that is not that of the content shows, so that another content under the same name is another revision.
func TestRevisionCheck(t *testing.T) {
	opaque := v1alpha1.Revision{Spec: v1alpha1.RevisionSpec{Opaque: "os-1.45", Digest: v1alpha1.OpaqueDigest("os-1.45")}}
	opaque.Name = "v2"
	if err := opaque.Spec.Check(); err != nil {
		t.Error(err)
	}
	before := opaque.Ref()
	opaque.Spec.Opaque = "os-1.46"
	if err := opaque.Spec.Check(); err == nil {
		t.Error("another content under the same digest: got no error, want one")
	}
	opaque.Spec.Digest = v1alpha1.OpaqueDigest("os-1.46")
	if opaque.Ref() == before {
		t.Errorf("another content is the revision %v, want another one", before)
	}
	// The digest of the text by sha256sum.
	if got, want := v1alpha1.OpaqueDigest("os-1.45"), "sha256:81d9906ae93ad5c6c9925964a9d4b1ee8d7817ac84a26b33b671a774fd7c31d6"; got != want {
		t.Errorf("OpaqueDigest: got %q, want %q", got, want)
	}
}
