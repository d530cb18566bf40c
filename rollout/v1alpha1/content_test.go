// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// What two revisions of a history differ in can be said: their settings, what their hooks are told, and their configs field by field (R-RO-29).
func TestContentsCanBeCompared(t *testing.T) {
	before := v1alpha1.RevisionSpec{Digest: "sha256:1", Opaque: "1.44.0", MinAge: &metav1.Duration{Duration: time.Hour}}
	after := v1alpha1.RevisionSpec{Digest: "sha256:2", Opaque: "1.45.0", Class: "NonIntrusive"}
	a, err1 := before.Content(map[string]string{"kubelet": "maxPods: 110", "same": "x"})
	b, err2 := after.Content(map[string]string{"kubelet": "maxPods: 200", "same": "x"})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	var got []string
	for _, c := range rollout.Diff(a, b) {
		got = append(got, fmt.Sprint(c))
	}
	want := []string{`config/kubelet: maxPods: 110 -> 200`, `opaque: "1.44.0" -> "1.45.0"`, `spec: class: added "NonIntrusive"`, `spec: minAge: removed "1h0m0s"`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
