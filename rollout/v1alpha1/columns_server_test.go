// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// What kubectl get prints answers what the node runs, in which attempt and phase it is, and why; who has closed a ledger; and what a
// revision does to a node.
func TestColumnsAnswer(t *testing.T) {
	s := serve(t, v1alpha1.NodeShadowKind, v1alpha1.NodeShadowsResource)
	s.must(s.create("columns", `{"nodeUID":"u-1","revoked":3}`))
	for _, step := range []step{
		report(`"known":true,"current":{"name":"v1","digest":"sha256:11"},"previous":{"name":"v0"},"staged":{"name":"v2"},"bootID":"boot-1"`),
		orders(`"grant":5,` + v2),
		report(`"attempt":5,"phase":"Refused","reason":"DiskFull","message":"2 GiB are left, want 5",` + v2),
	} {
		s.must(s.play(step, "columns", nil))
	}
	checkColumns(t, "nodeshadows", "columns", map[string]any{
		"Runs": "v1", "Wanted": "v2", "Grant": int64(5), "Attempt": int64(5), "Phase": "Refused", "Reason": "DiskFull", "Why": "2 GiB are left, want 5",
		"Revoked": int64(3), "Previous": "v0", "Staged": "v2", "Digest": "sha256:11", "Boot": "boot-1",
	})

	s = serve(t, v1alpha1.DisruptionLedgerKind, v1alpha1.DisruptionLedgersResource)
	s.must(s.create("open", ledger(0, "")))
	checkColumns(t, "disruptionledgers", "open", map[string]any{"Epoch": int64(0), "Slots": int64(0), "Closed-By": nil, "Why": nil, "Scope": nil, "Fence": int64(0)})
	s.must(s.create("columns", ledger(9, `,"fence":3,"closures":[{"request":"abort-1","scope":"uid-1","reason":"it broke"},{"request":"other"}]`+slots("a 4", "b 5"))))
	checkColumns(t, "disruptionledgers", "columns", map[string]any{
		"Epoch": int64(9), "Slots": int64(2), "Closed-By": "abort-1", "Why": "it broke", "Scope": "uid-1", "Fence": int64(3),
	})

	s = serve(t, v1alpha1.RevisionKind, v1alpha1.RevisionsResource)
	d := `"digest":"` + digest + `"`
	s.must(s.create("columns", `{`+d+`,"configMapRef":{"namespace":"a","name":"b",`+d+`},"class":"NonIntrusive","irreversible":true,"minAge":"24h"}`))
	checkColumns(t, "revisions", "columns", map[string]any{
		"Class": "NonIntrusive", "Irreversible": true, "Min-Age": "24h", "ConfigMap": "b", "Opaque": nil, "Digest": digest,
	})
}

func checkColumns(t *testing.T, resource, name string, want map[string]any) {
	t.Helper()
	table := tableOf(t, resource, name)
	for i, column := range table.ColumnDefinitions {
		if w, ok := want[column.Name]; ok && table.Rows[0].Cells[i] != w {
			t.Errorf("%s: column %q shows %v, want %v", resource, column.Name, table.Rows[0].Cells[i], w)
		}
		delete(want, column.Name)
	}
	if len(want) > 0 {
		t.Errorf("%s: columns without which the table doesn't answer: %v", resource, want)
	}
}

// tableOf asks for one object as kubectl get does.
func tableOf(t *testing.T, resource, name string) metav1.Table {
	t.Helper()
	config := shared.Env(t).Config()
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := client.Get().Resource(resource).Name(name).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(deadline(t))
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
