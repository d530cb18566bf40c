// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/evictionapi"
)

// The API is served where both of its resources are; any other answer of the API server than "not found" is an error.
func TestServedNeedsBothResources(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		body    string
		want    bool
		unknown bool
	}{
		"both":       {200, `{"resources":[{"name":"evictions"},{"name":"evictionrequests"}]}`, true, false},
		"one":        {200, `{"resources":[{"name":"evictionrequests"}]}`, false, false},
		"none":       {200, `{"resources":[]}`, false, false},
		"not found":  {404, `{"kind":"Status","apiVersion":"v1","code":404,"reason":"NotFound"}`, false, false},
		"overloaded": {503, `{"kind":"Status","apiVersion":"v1","code":503}`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/apis/lifecycle.k8s.io/v1alpha1" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			client := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL})
			got, err := evictionapi.IsServed(t.Context(), client)
			if got != c.want || (err != nil) != c.unknown {
				t.Errorf("IsServed: %v, %v; want %v, unknown %v", got, err, c.want, c.unknown)
			}
		})
	}
}

// A pod's responders and its group are read from fields that the library's own Pod type has not.
func TestFieldsOfPod(t *testing.T) {
	t.Parallel()
	pod := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "shop", "name": "cart-0"}, "spec": spec,
		}}
	}
	full := pod(map[string]any{
		"schedulingGroup": map[string]any{"podGroupName": "gang"},
		"evictionResponders": []any{
			map[string]any{"name": "acme.io/foo", "priority": int64(10000)}, map[string]any{"name": "acme.io/bar"},
		},
	})
	responders, err := evictionapi.PodResponders(full)
	if err != nil || len(responders) != 2 || responders[0].Name != "acme.io/foo" || *responders[0].Priority != 10000 ||
		responders[1].Priority != nil {
		t.Errorf("responders: %+v, %v", responders, err)
	}
	if !evictionapi.HasSchedulingGroup(full) {
		t.Error("the group is not seen")
	}
	empty := pod(map[string]any{"nodeName": "n1"})
	if responders, err := evictionapi.PodResponders(empty); err != nil || len(responders) != 0 {
		t.Errorf("a pod without responders: %+v, %v", responders, err)
	}
	if evictionapi.HasSchedulingGroup(empty) {
		t.Error("a group is seen where none is")
	}
	if _, err := evictionapi.PodResponders(pod(map[string]any{"evictionResponders": "x"})); err == nil {
		t.Error("a wrong type is accepted")
	}
}
