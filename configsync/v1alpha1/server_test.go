// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/testenv"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// nodeConfigs installs the definitions and returns a client of the resource.
func nodeConfigs(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	env := shared.Env(t)
	if err := env.InstallCRDs(deadline(t), v1alpha1.CRDs()...); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(v1alpha1.NodeConfigsResource)
}

func nodeConfig(name, spec string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	raw := `{"apiVersion":"belay.dev/v1alpha1","kind":"NodeConfig","metadata":{"name":"` + name + `"},"spec":` + spec + `}`
	if err := json.Unmarshal([]byte(raw), &u.Object); err != nil {
		panic(err)
	}
	return u
}

var digest = "sha256:" + strings.Repeat("0f", 32)

// TestServerChecksSources covers R-CS-23/24/25/28 where most mistakes are made: the API server refuses what the object
// alone shows to be wrong, and says what would be right.
// L-CS-10.
func TestServerChecksSources(t *testing.T) {
	client := nodeConfigs(t)
	for _, c := range []struct{ name, spec, want string }{
		{"no source", `{}`, ""},
		{"null source", `{"source":null}`, ""},
		{"by uid", ref(`"namespace":"a","name":"b","uid":"c-1"`), ""},
		{"by digest", ref(`"namespace":"a","name":"b.c","key":"kubelet","digest":"` + digest + `"`), ""},
		{"followed", ref(`"namespace":"a","name":"b","policy":"Follow"`), ""},
		{"all fields", ref(`"kind":"ConfigMap","namespace":"a","name":"b","uid":"c","key":"k","policy":"Pin","digest":"` + digest + `"`), ""},
		{"all-nil", `{"source":{}}`, "exactly one subfield must be non-nil, but all were nil"},
		{"null subfield", `{"source":{"configMapRef":null}}`, "exactly one subfield must be non-nil, but all were nil"},
		{"unknown subfield alone", `{"source":{"secretRef":{"name":"x"}}}`, "exactly one subfield must be non-nil, but all were nil"},
		{"name alone", ref(`"namespace":"a","name":"b"`), "must have a uid or a digest, or the policy Follow"},
		{"pinned by name", ref(`"namespace":"a","name":"b","policy":"Pin"`), "must have a uid or a digest, or the policy Follow"},
		{"no namespace", ref(`"name":"b","uid":"c"`), "namespace: Required value"},
		{"no name", ref(`"namespace":"a","uid":"c"`), "name: Required value"},
		{"empty namespace", ref(`"namespace":"","name":"b","uid":"c"`), "namespace in body should be at least 1 chars long"},
		{"empty name", ref(`"namespace":"a","name":"","uid":"c"`), "name in body should be at least 1 chars long"},
		{"empty uid", ref(`"namespace":"a","name":"b","uid":""`), "uid in body should match"},
		{"traversal in namespace", ref(`"namespace":"../a","name":"b","uid":"c"`), "namespace in body should match"},
		{"traversal in name", ref(`"namespace":"a","name":"../b","uid":"c"`), "name in body should match"},
		{"traversal in uid", ref(`"namespace":"a","name":"b","uid":"c/../d"`), "uid in body should match"},
		{"dots in uid", ref(`"namespace":"a","name":"b","uid":"c..d"`), "no dots in a row"},
		{"traversal in key", ref(`"namespace":"a","name":"b","uid":"c","key":"../k"`), "key in body should match"},
		{"hidden key", ref(`"namespace":"a","name":"b","uid":"c","key":"..k"`), "must be a key that a ConfigMap can have"},
		{"dots as key", ref(`"namespace":"a","name":"b","uid":"c","key":".."`), "must be a key that a ConfigMap can have"},
		{"wrong kind", ref(`"kind":"Secret","namespace":"a","name":"b","uid":"c"`), `supported values: "ConfigMap"`},
		{"unknown policy", ref(`"namespace":"a","name":"b","uid":"c","policy":"follow"`), `supported values: "Pin", "Follow"`},
		{"other digest", ref(`"namespace":"a","name":"b","digest":"md5:0f"`), "digest in body should match"},
		{"digest in capitals", ref(`"namespace":"a","name":"b","digest":"` + strings.ToUpper(digest) + `"`), "digest in body should match"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := client.Create(deadline(t), nodeConfig("checked", c.spec), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v, want it accepted", err)
			case c.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want it refused as invalid with %q", err, c.want)
			}
		})
	}
}

func ref(fields string) string { return `{"source":{"configMapRef":{` + fields + `}}}` }

// TestSpecAndStatusAreApart shows that a write of the spec leaves the status alone, and the other way round, and that the generation
// counts changes of the spec only.
func TestSpecAndStatusAreApart(t *testing.T) {
	client := nodeConfigs(t)
	ctx := deadline(t)
	in := nodeConfig("apart", `{}`)
	in.Object["status"] = map[string]any{"error": "by the writer of the spec"}
	made, err := client.Create(ctx, in, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, found := made.Object["status"]; found {
		t.Errorf("status is %v after a write of the spec, want none", made.Object["status"])
	}
	made.Object["status"] = map[string]any{"error": "by the node"}
	made.Object["spec"] = map[string]any{"source": map[string]any{"configMapRef": map[string]any{"namespace": "a", "name": "b", "uid": "c"}}}
	got, err := client.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, found, _ := unstructured.NestedMap(got.Object, "spec", "source"); found || got.GetGeneration() != 1 {
		t.Errorf("a write of the status made the spec %v and the generation %d, want no source and 1", got.Object["spec"], got.GetGeneration())
	}
}

// TestColumnsAnswer shows what kubectl get prints: which config is wanted and which in use, whether that is OK, and why (C-15).
// L-CS-15.
func TestColumnsAnswer(t *testing.T) {
	client := nodeConfigs(t)
	ctx := deadline(t)
	made, err := client.Create(ctx, nodeConfig("columns", ref(`"namespace":"configs","name":"pool-a-2","uid":"u2"`)), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Object["status"] = map[string]any{
		"active":        map[string]any{"display": "configs/pool-a-1"},
		"assigned":      map[string]any{"display": "configs/pool-a-2"},
		"lastKnownGood": map[string]any{"display": "configs/pool-a-1"},
		"conditions": []any{map[string]any{
			"type": "ConfigOK", "status": "False", "reason": v1alpha1.ReasonRejected,
			"message":            "using last known good: (UID: u1): failed to validate current (UID: u2)",
			"lastTransitionTime": "2026-01-02T03:04:05Z",
		}},
	}
	if _, err := client.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	table := tableOf(t, "columns")
	want := map[string]any{
		"Wanted": "pool-a-2", "Active": "configs/pool-a-1", "OK": "False", "Reason": "Rejected",
		"Why":      "using last known good: (UID: u1): failed to validate current (UID: u2)",
		"Assigned": "configs/pool-a-2", "Last-Known-Good": "configs/pool-a-1", "Error": nil,
	}
	for i, column := range table.ColumnDefinitions {
		if w, ok := want[column.Name]; ok && table.Rows[0].Cells[i] != w {
			t.Errorf("column %q shows %v, want %v", column.Name, table.Rows[0].Cells[i], w)
		}
		delete(want, column.Name)
	}
	if len(want) > 0 {
		t.Errorf("columns without which the table doesn't answer: %v", want)
	}
}

// tableOf asks for one NodeConfig as kubectl get does.
func tableOf(t *testing.T, name string) metav1.Table {
	t.Helper()
	config := shared.Env(t).Config()
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := client.Get().Resource("nodeconfigs").Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("got %d rows, want 1: %s", len(table.Rows), raw)
	}
	return table
}
