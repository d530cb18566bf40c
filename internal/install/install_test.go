// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A newer version that installs its role between the check of an older one and its write is not overwritten: the write
// is for the object that was checked, and what has changed is checked again.
func TestApplyChecksWhatItReplaces(t *testing.T) {
	const ours = `{apiGroups: [""], resources: [nodes], verbs: [get]}`
	roleAt := func(rules, version string) *unstructured.Unstructured {
		u := decode(t, role(rules))
		u.SetAPIVersion("rbac.authorization.k8s.io/v1")
		u.SetResourceVersion(version)
		return u
	}
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	live := roleAt(ours, "1")
	client.PrependReactor("get", "clusterroles", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, live.DeepCopy(), nil
	})
	client.PrependReactor("patch", "clusterroles", func(a clienttesting.Action) (bool, runtime.Object, error) {
		live = roleAt(ours+`,{apiGroups: [""], resources: [nodes], verbs: [patch]}`, "2")
		sent := &unstructured.Unstructured{}
		if err := json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &sent.Object); err != nil {
			t.Error(err)
		}
		if got := sent.GetResourceVersion(); got != "1" {
			t.Errorf("the write is for resource version %q, want that of the check, 1", got)
		}
		resource := schema.GroupResource{Resource: "clusterroles"}
		return true, nil, apierrors.NewConflict(resource, "thing", errors.New("changed"))
	})
	err := applier{client: client, manager: "test", keepNewer: true}.apply(t.Context(), roleAt(ours, ""))
	var newer *NewerError
	if !errors.As(err, &newer) || newer.Missing != `right "patch" on "nodes" of group ""` {
		t.Errorf("got %v, want a NewerError", err)
	}
}
