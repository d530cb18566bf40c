// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/controller/controllertest"
	"github.com/belayproject/belay/machine/file"
	"github.com/belayproject/belay/machine/machinetest"
	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/v1alpha1"
)

const manifest = `apiVersion: belay.dev/v1alpha1
kind: Machine
metadata: {namespace: fleet, name: NAME}
spec:
  roles: [control-plane]
  versions: {kubelet: v1.36.1}
  providerConfig: {image: a}
`

func put(t *testing.T, dir, name string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(strings.ReplaceAll(manifest, "NAME", name)), 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *file.Store {
	t.Helper()
	s, err := file.Open(dir)
	must(t, err)
	return s
}

// reconcile works at machines until each of them runs, or is gone.
func reconcile(t *testing.T, store controller.Machines, cloud *machinetest.Memory, keys ...machine.Key) {
	t.Helper()
	nodes := &controllertest.Cluster{Instances: cloud.Instances}
	c, err := controller.New(controller.Options{Cluster: "east", Machines: store, Nodes: nodes, Provider: cloud, Drainer: nodes})
	must(t, err)
	for range 100 {
		settled := true
		for _, key := range keys {
			if _, err := c.Reconcile(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			m, err := store.Live(t.Context(), key)
			settled = settled && (err != nil || m.Phase == machine.PhaseRunning && m.Deleted.IsZero())
		}
		if settled {
			return
		}
		<-time.After(10 * time.Second)
	}
	t.Fatal("the machines don't come to rest")
}

// R-MA-12: machines are made from files by the same reconcilers, also over a restart, and are moved into a cluster then: nothing is created at the provider, and
// nothing deleted.
func TestFirstClusterAndMove(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		put(t, dir, "a")
		put(t, dir, "b")
		cloud := &machinetest.Memory{Polls: 1}
		s := open(t, dir)
		keys, err := s.Refresh()
		must(t, err)
		reconcile(t, s, cloud, keys[:1]...)
		must(t, s.Close())
		s = open(t, dir)
		again, err := s.Refresh()
		must(t, err)
		if len(keys) != 2 || len(again) != 0 {
			t.Errorf("first %v, and after a restart %v have changed", keys, again)
		}
		reconcile(t, s, cloud, keys...)
		before := cloud.Calls()
		cluster := &controllertest.Store{}
		all, err := s.Export()
		must(t, err)
		for _, o := range all {
			m, err := o.Core()
			must(t, err)
			cluster.Put(m)
		}
		must(t, s.Close())
		reconcile(t, cluster, cloud, keys...)
		after := cloud.Calls()
		if after["Create"] != before["Create"] || after["Delete"] != before["Delete"] || after["Stop"] != before["Stop"] {
			t.Errorf("R-MA-12: before the move the provider was asked %v, and after it %v", before, after)
		}
		if n := len(cloud.Instances()); n != 2 {
			t.Errorf("R-MA-12: there are %d instances", n)
		}
	})
}

// R-MA-26: a machine whose manifest is gone, or can't be read, is reported and stays; to be deleted it has to be named.
func TestUnreferencedIsNotDeleted(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		put(t, dir, "a")
		put(t, dir, "b")
		cloud := &machinetest.Memory{}
		s := open(t, dir)
		keys, err := s.Refresh()
		must(t, err)
		reconcile(t, s, cloud, keys...)
		a := machine.Key{Namespace: "fleet", Name: "a"}
		must(t, os.Remove(filepath.Join(dir, "a.yaml")))
		_, err = s.Refresh()
		must(t, err)
		if diff := cmp.Diff([]machine.Key{a}, s.Unreferenced()); diff != "" {
			t.Errorf("R-MA-26: unreferenced (-want +got):\n%s", diff)
		}
		must(t, os.WriteFile(filepath.Join(dir, "b.yaml"), []byte("apiVersion: ["), 0o600))
		if _, err := s.Refresh(); err == nil || !strings.Contains(err.Error(), "b.yaml") {
			t.Errorf("the manifest that can't be read: %v", err)
		}
		reconcile(t, s, cloud, keys...)
		if n := len(cloud.Instances()); n != 2 || slices.ContainsFunc(cloud.Instances(), retained) {
			t.Errorf("R-MA-26: the instances are %+v", cloud.Instances())
		}
		must(t, s.Delete(a))
		reconcile(t, s, cloud, a)
		if _, err := s.Live(t.Context(), a); !errors.Is(err, os.ErrNotExist) || !slices.ContainsFunc(cloud.Instances(), retained) {
			t.Errorf("deleted: %v, instances %+v", err, cloud.Instances())
		}
		must(t, s.Close())
	})
}

func retained(i provider.Instance) bool { return !i.State.Alive() }

// A directory has one process, an edited manifest is another generation, and a write with an older version is refused.
func TestStoreIsGuarded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "a")
	s := open(t, dir)
	if _, err := file.Open(dir); err == nil || !strings.Contains(err.Error(), "another process has it") {
		t.Errorf("a second Open: %v", err)
	}
	keys, err := s.Refresh()
	must(t, err)
	read, err := s.Live(t.Context(), keys[0])
	must(t, err)
	_, err = s.SetFinalizer(t.Context(), read, true)
	must(t, err)
	if _, err := s.SetProviderID(t.Context(), read, "memory:///x-1"); !errors.Is(err, controller.ErrConflict) {
		t.Errorf("an old version: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(strings.NewReplacer("NAME", "a", "v1.36.1", "v1.36.2").Replace(manifest)), 0o600))
	_, err = s.Refresh()
	must(t, err)
	next, err := s.Live(t.Context(), keys[0])
	must(t, err)
	if next.Generation != read.Generation+1 || next.Spec.Versions.Kubelet != "v1.36.2" || next.UID != read.UID || !next.Finalizer {
		t.Errorf("after an edit: %+v", next)
	}
	must(t, os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(strings.ReplaceAll(manifest, "roles", "rolls")), 0o600))
	if _, err := s.Refresh(); err == nil || !strings.Contains(err.Error(), "rolls") {
		t.Errorf("an unknown field: %v", err)
	}
	must(t, s.Close())
}

// R-MA-08 and R-MA-12: a config from a JSON manifest has the bytes that an API server keeps of it, whatever the order of its keys is in the file.
func TestManifestsAreKeptAsByAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	raw := `{"kind":"Machine","apiVersion":"belay.dev/v1alpha1","metadata":{"namespace":"fleet","name":"a"},
		"spec":{"roles":["worker"],"providerConfig":{"z": 1, "image": "a<b>&c", "deep": {"y": [1.0, 2.50, 10000000000], "b": null}}}}`
	must(t, os.WriteFile(filepath.Join(dir, "a.json"), []byte(raw), 0o600))
	s := open(t, dir)
	keys, err := s.Refresh()
	must(t, err)
	got, err := s.Live(t.Context(), keys[0])
	must(t, err)
	u, served := &unstructured.Unstructured{}, &v1alpha1.Machine{}
	must(t, u.UnmarshalJSON([]byte(raw))) // as a server, and its client
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, served))
	want, err := served.Core()
	must(t, err)
	if string(got.Spec.Config) != string(want.Spec.Config) || got.Spec.Digest() != want.Spec.Digest() {
		t.Errorf("R-MA-08: the config is\n%s, a server keeps\n%s", got.Spec.Config, want.Spec.Config)
	}
	must(t, s.Close())
	s = open(t, dir)
	if again, err := s.Refresh(); err != nil || len(again) != 0 {
		t.Errorf("after a restart %v have changed, %v", again, err)
	}
	must(t, s.Close())
}

// R-MA-12: the ProviderID that was found out stays: that of a manifest may be of an instance that is gone.
func TestRecordedProviderIDStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "a")
	s := open(t, dir)
	keys, err := s.Refresh()
	must(t, err)
	read, err := s.Live(t.Context(), keys[0])
	must(t, err)
	_, err = s.SetProviderID(t.Context(), read, "memory:///z/x-2")
	must(t, err)
	text := strings.ReplaceAll(manifest, "NAME", "a") + "  providerID: memory:///z/x-1\n"
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600))
	changed, err := s.Refresh()
	must(t, err)
	if at, err := s.Live(t.Context(), keys[0]); err != nil || at.Spec.ProviderID != "memory:///z/x-2" || len(changed) != 0 {
		t.Errorf("R-MA-12: the ProviderID is %q, %v; changed %v", at.Spec.ProviderID, err, changed)
	}
	must(t, s.Close())
}

// Machines whose names differ have records that differ. A record under the name of another one is refused, and not read for it.
func TestNamesAreApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want []machine.Key
	for i, key := range []machine.Key{{Namespace: "a", Name: "b"}, {Name: "a_b"}, {Name: "a%5Fb"}} {
		text := strings.NewReplacer("namespace: fleet", "namespace: \""+key.Namespace+"\"", "NAME", "\""+key.Name+"\"").Replace(manifest)
		must(t, os.WriteFile(filepath.Join(dir, string(rune('0'+i))+".yaml"), []byte(text), 0o600))
		want = append(want, key)
	}
	s := open(t, dir)
	_, err := s.Refresh()
	must(t, err)
	must(t, s.Close())
	s = open(t, dir)
	all, err := s.List(t.Context())
	must(t, err)
	for _, key := range want {
		if !slices.ContainsFunc(all, func(m machine.Machine) bool { return m.Key == key }) {
			t.Errorf("the machine %q is lost", key)
		}
	}
	must(t, s.Close())
	must(t, os.Rename(filepath.Join(dir, ".belay", "a_b.json"), filepath.Join(dir, ".belay", "c.json")))
	if _, err := file.Open(dir); err == nil || !strings.Contains(err.Error(), `"a_b.json"`) {
		t.Errorf("a record under another name: %v", err)
	}
}
