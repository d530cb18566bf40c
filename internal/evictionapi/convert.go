// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionapi

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Version is the version of the API that this package knows.
func Version() schema.GroupVersion {
	return schema.GroupVersion{Group: "lifecycle.k8s.io", Version: "v1alpha1"}
}

// RequestsResource is the resource of EvictionRequests, for a dynamic client.
func RequestsResource() schema.GroupVersionResource {
	return Version().WithResource("evictionrequests")
}

// EvictionsResource is the resource of Evictions, for a dynamic client.
func EvictionsResource() schema.GroupVersionResource {
	return Version().WithResource("evictions")
}

// DecodeRequest decodes an EvictionRequest. The error names the object and the first field that has a wrong type.
func DecodeRequest(u *unstructured.Unstructured) (*EvictionRequest, error) {
	return decodeInto(u, &EvictionRequest{}, "EvictionRequest")
}

// DecodeEviction decodes an Eviction. The error names the object and the first field that has a wrong type.
func DecodeEviction(u *unstructured.Unstructured) (*Eviction, error) {
	return decodeInto(u, &Eviction{}, "Eviction")
}

// EncodeRequest returns the EvictionRequest with its apiVersion and kind for a dynamic client.
func EncodeRequest(r *EvictionRequest) (*unstructured.Unstructured, error) {
	return encodeAs(r, "EvictionRequest")
}

// EncodeEviction returns the Eviction with its apiVersion and kind for a dynamic client.
func EncodeEviction(e *Eviction) (*unstructured.Unstructured, error) { return encodeAs(e, "Eviction") }

// PodResponders returns a pod's spec.evictionResponders. A server without the API, or with its feature gate off, keeps
// none.
func PodResponders(pod *unstructured.Unstructured) ([]PodResponder, error) {
	var spec struct {
		EvictionResponders []PodResponder `json:"evictionResponders,omitempty"`
	}
	fields, _, err := unstructured.NestedMap(pod.Object, "spec")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec)
	}
	if err != nil {
		return nil, fmt.Errorf("pod %s/%s: spec.evictionResponders: %w", pod.GetNamespace(), pod.GetName(), err)
	}
	return spec.EvictionResponders, nil
}

// HasSchedulingGroup reports whether a pod is part of a PodGroup: spec.schedulingGroup is set. The EvictionRequest API
// does not support such pods.
func HasSchedulingGroup(pod *unstructured.Unstructured) bool {
	group, found, err := unstructured.NestedFieldNoCopy(pod.Object, "spec", "schedulingGroup")
	return err == nil && found && group != nil
}

func decodeInto[T any](u *unstructured.Unstructured, into *T, kind string) (*T, error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", kind, u.GetNamespace(), u.GetName(), err)
	}
	return into, nil
}

func encodeAs(object any, kind string) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encoding a %s: %w", kind, err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(Version().WithKind(kind))
	return u, nil
}
