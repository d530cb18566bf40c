// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/v1alpha1"
)

func good() v1alpha1.ConfigMapRef {
	return v1alpha1.ConfigMapRef{Namespace: "configs", Name: "pool-a", UID: "5f2d6f3e", Key: "kubelet"}
}

// TestSourceIsEmptyCorrectOrInvalid covers R-CS-23/24/25/28/29: exactly one of the three holds, and an invalid source names its
// field and what would be right.
func TestSourceIsEmptyCorrectOrInvalid(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for _, c := range []struct {
		name         string
		change       func(*v1alpha1.ConfigMapRef)
		field, cause string // of the error; none means correct
	}{
		{"by uid", func(*v1alpha1.ConfigMapRef) {}, "", ""},
		{"by digest", func(r *v1alpha1.ConfigMapRef) { r.UID, r.Digest = "", digest }, "", ""},
		{"followed", func(r *v1alpha1.ConfigMapRef) { r.UID, r.Policy = "", v1alpha1.PolicyFollow }, "", ""},
		{"no key", func(r *v1alpha1.ConfigMapRef) { r.Key = "" }, "", ""},
		{"explicit defaults", func(r *v1alpha1.ConfigMapRef) { r.Kind, r.Policy = "ConfigMap", v1alpha1.PolicyPin }, "", ""},
		{"no namespace", func(r *v1alpha1.ConfigMapRef) { r.Namespace = "" }, "configMapRef.namespace", "must not be empty"},
		{"no name", func(r *v1alpha1.ConfigMapRef) { r.Name = "" }, "configMapRef.name", "must not be empty"},
		{"name alone", func(r *v1alpha1.ConfigMapRef) { r.UID = "" }, "configMapRef.uid", "it must be set, or digest"},
		{"wrong kind", func(r *v1alpha1.ConfigMapRef) { r.Kind = "Secret" }, "configMapRef.kind", `must be "ConfigMap" or absent`},
		{"wrong policy", func(r *v1alpha1.ConfigMapRef) { r.Policy = "follow" }, "configMapRef.policy", `must be "Pin", "Follow" or absent`},
		{"uid in capitals", func(r *v1alpha1.ConfigMapRef) { r.UID = "A" }, "configMapRef.uid", "must be 1 to 100"},
		{"dots in uid", func(r *v1alpha1.ConfigMapRef) { r.UID = "a..b" }, "configMapRef.uid", "must be 1 to 100"},
		{"long uid", func(r *v1alpha1.ConfigMapRef) { r.UID = strings.Repeat("a", 101) }, "configMapRef.uid", "must be 1 to 100"},
		{"newline in name", func(r *v1alpha1.ConfigMapRef) { r.Name = "a\nb" }, "configMapRef.name", `"a\nb"`},
		{"parent as key", func(r *v1alpha1.ConfigMapRef) { r.Key = ".." }, "configMapRef.key", "must be 1 to 253"},
		{"short digest", func(r *v1alpha1.ConfigMapRef) { r.Digest = digest[:70] }, "configMapRef.digest", `must be "sha256:" and 64`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ref := good()
			c.change(&ref)
			spec, err := kube.SourceToSpec(&v1alpha1.NodeConfigSource{ConfigMapRef: &ref}, 7)
			var invalid *configsync.InvalidError
			switch {
			case c.field == "" && (err != nil || spec == nil):
				t.Fatalf("got %v, %v, want a spec", spec, err)
			case c.field == "":
				return
			case !errors.As(err, &invalid) || spec != nil:
				t.Fatalf("got %v, %v, want an *InvalidError and no spec", spec, err)
			case invalid.Field != c.field || !strings.Contains(invalid.Problem, c.cause):
				t.Errorf("got field %q, problem %q, want %q, %q", invalid.Field, invalid.Problem, c.field, c.cause)
			}
		})
	}
}

// TestSpecIsWhatTheSourceNames shows that every field of a reference arrives.
func TestSpecIsWhatTheSourceNames(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	ref := v1alpha1.ConfigMapRef{Namespace: "a", Name: "b", UID: "c", Key: "d", Digest: digest, Policy: v1alpha1.PolicyFollow}
	got, err := kube.SourceToSpec(&v1alpha1.NodeConfigSource{ConfigMapRef: &ref}, 7)
	must(t, err)
	want := configsync.Spec{Namespace: "a", Name: "b", UID: "c", Key: "d", Digest: digest, Policy: configsync.Follow, Generation: 7}
	if *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
}

// TestEmptySource covers R-CS-23: nil, and nothing else, is empty.
func TestEmptySource(t *testing.T) {
	if spec, err := kube.SourceToSpec(nil, 7); spec != nil || err != nil {
		t.Errorf("a nil source gave %v, %v, want nil, nil", spec, err)
	}
	_, err := kube.SourceToSpec(&v1alpha1.NodeConfigSource{}, 7)
	const literal = "invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil"
	if err == nil || err.Error() != literal {
		t.Errorf("a source without subfields gave %v, want the literal %q (R-CS-79)", err, literal)
	}
}
