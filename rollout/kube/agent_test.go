// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/belayproject/belay/rollout/kube"
	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// R-RO-34: an agent reads its shadow and says what its node runs, by compare-and-swap on the real server.
func TestAgentShadow(t *testing.T) {
	b := newBed(t)
	a := must1(kube.NewAgentShadow(b.shadows, "agent", nil))
	if _, _, err := a.Read(b.ctx()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of no shadow: got error %v, want fs.ErrNotExist", err)
	}
	if err := a.Store(b.ctx(), nodeagent.Status{}, "1"); !errors.Is(err, nodeagent.ErrConflict) {
		t.Errorf("Store to no shadow: got error %v, want ErrConflict", err)
	}
	sh, err := b.shadows.Create(b.ctx(), protocol.NewShadow("agent", b.uid("agent"), protocol.Ledger{Epoch: 2}))
	b.must(err)
	_, version, err := a.Read(b.ctx())
	b.must(err)
	said := nodeagent.Status{
		Report: protocol.Report{Known: true}, Current: protocol.Revision{Name: "v1", Digest: "sha256:11"}, BootID: "boot-1",
	}
	made := b.calls.since(func() { err = a.Store(b.ctx(), said, version) })
	b.must(err)
	if want := []string{"PATCH /apis/belay.dev/v1alpha1/nodeshadows/agent/status"}; !slices.Equal(made, want) {
		t.Errorf("Store after Read: got calls %q, want %q", made, want)
	}
	if err := a.Store(b.ctx(), said, version); !errors.Is(err, nodeagent.ErrConflict) {
		t.Errorf("Store over the version before: got error %v, want ErrConflict", err)
	}
	seen, version, err := a.Read(b.ctx())
	b.must(err)
	want := nodeagent.Shadow{Node: "agent", UID: sh.Spec.NodeUID, Orders: protocol.Orders{Revoked: 2}, Status: said}
	if seen != want {
		t.Errorf("Read: got %+v, want %+v", seen, want)
	}
	sh, err = b.shadows.Get(b.ctx(), "agent")
	b.must(err)
	b.order(sh, protocol.Orders{Revoked: 2, Stage: "v2"})
	said.Reason = "Late"
	if err := a.Store(b.ctx(), said, version); !errors.Is(err, nodeagent.ErrConflict) {
		t.Errorf("Store over a version that was ordered since: got error %v, want ErrConflict", err)
	}
}

// Nothing that an agent says gets lost, in any field.
func TestNothingAnAgentSaysIsLost(t *testing.T) {
	kinds := map[schema.GroupVersionResource]string{v1alpha1.NodeShadowsResource: "NodeShadowList"}
	fields := reflect.TypeFor[nodeagent.Status]().NumField()
	for only := range fields + 1 { // the last one sets all
		var want nodeagent.Status
		for i := range fields {
			if i == only || only == fields {
				set(t, reflect.ValueOf(&want).Elem().Field(i), fmt.Sprint(i))
			}
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeUID": "u"}}}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.NodeShadowKind))
		u.SetName("n")
		u.SetResourceVersion("7")
		a := must1(kube.NewAgentShadow(must1(kube.NewShadows(fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, u))), "n", nil))
		_, version, err := a.Read(t.Context())
		if err == nil {
			err = a.Store(t.Context(), want, version)
		}
		got, _, again := a.Read(t.Context())
		if err := errors.Join(err, again); err != nil || got.Status != want {
			t.Errorf("got %+v, %v, want %+v", got.Status, err, want)
		}
	}
}

// set gives every field in v a value of its own.
func set(t *testing.T, v reflect.Value, text string) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("s" + text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(7)
	case reflect.Struct:
		for i := range v.NumField() {
			set(t, v.Field(i), fmt.Sprint(text, "-", i))
		}
	default:
		t.Fatalf("don't know how to set a %s", v.Type())
	}
}
