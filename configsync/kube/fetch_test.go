// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kube/internal/matrix"
)

func goodMap(name string) matrix.ConfigMap {
	return matrix.ConfigMap{Name: name, Immutable: true, Payloads: map[string]matrix.Payload{matrix.Key: matrix.GoodA}}
}

func byUID(r matrix.Ref) configsync.Spec {
	return configsync.Spec{Namespace: r.Namespace, Name: r.Name, UID: r.UID}
}

func fetcherOf(t *testing.T, c *cluster) configsync.FollowFetcher {
	t.Helper()
	f, err := kube.NewConfigMapFetcher(c.client, kube.Options{})
	must(t, err)
	return f
}

// TestFetchedObjectIsWhole covers R-CS-09/14: what is to be checkpointed deep-equals what the server holds, metadata included, and
// is the same bytes each time.
// L-CS-13.
func TestFetchedObjectIsWhole(t *testing.T) {
	c := newCluster(t)
	cm := c.configMap(goodMap("whole"))
	cm.Labels, cm.Annotations = map[string]string{"pool": "a"}, map[string]string{"by": "ä <b> & c\u2028"}
	cm.Data["empty"], cm.Data["script"] = "", "a: \"<&>\"\r\n\tb: ß\n"
	cm.BinaryData = map[string][]byte{"blob": {0, 1, 0xfe, 0xff}}
	made, err := c.admin.CoreV1().ConfigMaps(c.namespace).Create(deadline(t), cm, metav1.CreateOptions{})
	must(t, err)
	got, err := fetcherOf(t, c).Fetch(deadline(t), byUID(refTo(made)))
	must(t, err)
	held, err := c.admin.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/" + c.namespace + "/configmaps/whole").DoRaw(deadline(t))
	must(t, err)
	var want, have map[string]any
	must(t, json.Unmarshal(held, &want))
	must(t, json.Unmarshal(got.Raw, &have))
	if !reflect.DeepEqual(have, want) {
		t.Errorf("raw is\n%s\nwant it to equal\n%s", got.Raw, held)
	}
	if got.UID != string(made.UID) || got.ResourceVersion != made.ResourceVersion || !got.Immutable || !reflect.DeepEqual(got.Data, made.Data) {
		t.Errorf("got %+v, want the fields of %+v", got, made)
	}
	again, err := fetcherOf(t, c).Fetch(deadline(t), byUID(refTo(made)))
	must(t, err)
	if string(again.Raw) != string(got.Raw) {
		t.Errorf("fetched twice, the same version has two forms:\n%s\n%s", got.Raw, again.Raw)
	}
}

// TestLargestConfigMapIsFetched shows that the bound on answers is above what a ConfigMap can be: 1 MiB of data that JSON escapes.
func TestLargestConfigMapIsFetched(t *testing.T) {
	c := newCluster(t)
	cm := c.configMap(goodMap("large"))
	cm.Data = map[string]string{"k": strings.Repeat("\n", 500_000) + strings.Repeat("x", 1<<20-500_000-1)}
	made, err := c.admin.CoreV1().ConfigMaps(c.namespace).Create(deadline(t), cm, metav1.CreateOptions{})
	must(t, err)
	got, err := fetcherOf(t, c).Fetch(deadline(t), byUID(refTo(made)))
	must(t, err)
	if got.Data["k"] != cm.Data["k"] {
		t.Errorf("got %d bytes, want %d as they are", len(got.Data["k"]), len(cm.Data["k"]))
	}
}

// TestOneSourceServesManyNodes covers R-CS-02/03: two nodes take the same ConfigMap, then each its own, and nothing is written to
// any of them.
func TestOneSourceServesManyNodes(t *testing.T) {
	a, b := newCluster(t), newCluster(t)
	b.grantIn(t, a.namespace, "agent-"+b.node, kube.ConfigMapRules("shared")...)
	one, err := a.Create(deadline(t), goodMap("shared"))
	must(t, err)
	own, err := b.Create(deadline(t), goodMap("own"))
	must(t, err)
	before, err := a.admin.CoreV1().ConfigMaps(a.namespace).Get(deadline(t), "shared", metav1.GetOptions{})
	must(t, err)
	for _, step := range []struct {
		node *cluster
		ref  matrix.Ref
	}{{a, one}, {b, one}, {b, own}} {
		ref := step.ref
		ref.Digest = ""
		must(t, step.node.assignNodeConfig(deadline(t), ref.Source()))
		source, err := kube.NewNodeConfigSource(step.node.client, step.node.node, kube.Options{})
		must(t, err)
		spec, err := source.Desired(deadline(t))
		must(t, err)
		obj, err := fetcherOf(t, step.node).Fetch(deadline(t), *spec)
		must(t, err)
		if obj.UID != step.ref.UID {
			t.Errorf("node %q got the ConfigMap with UID %q, want %q", step.node.node, obj.UID, step.ref.UID)
		}
	}
	after, err := a.admin.CoreV1().ConfigMaps(a.namespace).Get(deadline(t), "shared", metav1.GetOptions{})
	must(t, err)
	if !reflect.DeepEqual(before, after) {
		t.Errorf("the shared ConfigMap changed:\n%v\n%v", before, after)
	}
}

// TestGenerationIsObserved shows that a spec carries the generation of its NodeConfig, and an error of a spec its path in there.
func TestGenerationIsObserved(t *testing.T) {
	c := newCluster(t)
	must(t, c.assignNodeConfig(deadline(t), ""))
	must(t, c.assignNodeConfig(deadline(t), `{"configMapRef":{"namespace":"a","name":"b","uid":"c"}}`))
	source, err := kube.NewNodeConfigSource(c.client, c.node, kube.Options{})
	must(t, err)
	spec, err := source.Desired(deadline(t))
	must(t, err)
	if spec.Generation != 2 {
		t.Errorf("generation %d after one change, want 2", spec.Generation)
	}
}

// TestAbsentNodeConfigIsMissing shows that a NodeConfig that isn't there is an error that names it, never "use the local config".
func TestAbsentNodeConfigIsMissing(t *testing.T) {
	c := newCluster(t)
	source, err := kube.NewNodeConfigSource(c.client, c.node, kube.Options{})
	must(t, err)
	spec, err := source.Desired(deadline(t))
	if spec != nil || !errors.Is(err, configsync.ErrMissing) || !strings.Contains(err.Error(), `NodeConfig "`+c.node+`"`) {
		t.Errorf("got %v, %v, want an error that it doesn't exist and that names it", spec, err)
	}
}

// TestLegacyFieldIsDroppedByTheServer shows the limit that NewLegacySource documents (C-09): since 1.26 the API server drops
// what is written to the field, without an error. The source then says: local config.
// L-CS-09.
func TestLegacyFieldIsDroppedByTheServer(t *testing.T) {
	c := newCluster(t)
	node, err := c.admin.CoreV1().Nodes().Get(deadline(t), c.node, metav1.GetOptions{})
	must(t, err)
	//nolint:staticcheck // that the field is deprecated, and dropped, is what this test shows
	node.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "a", Name: "b", KubeletConfigKey: "k"}}
	held, err := c.admin.CoreV1().Nodes().Update(deadline(t), node, metav1.UpdateOptions{})
	must(t, err)
	if kept := held.Spec.ConfigSource; kept != nil { //nolint:staticcheck // as above
		t.Fatalf("the API server kept %v: the documentation of NewLegacySource is wrong", kept)
	}
	source, err := kube.NewLegacySource(c.client, c.node, kube.Options{})
	must(t, err)
	if spec, err := source.Desired(deadline(t)); spec != nil || err != nil {
		t.Errorf("got %v, %v, want the empty source", spec, err)
	}
}
