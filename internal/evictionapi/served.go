// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionapi

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// IsServed reports whether the API server serves EvictionRequests and Evictions. It does so where its feature gate
// EvictionRequestAPI is on and its --runtime-config names lifecycle.k8s.io/v1alpha1=true. One request is made, which
// ctx bounds. An error means that the answer is unknown: it may be asked again.
func IsServed(ctx context.Context, client discovery.DiscoveryInterface) (bool, error) {
	path := "/apis/" + Version().String()
	found := &metav1.APIResourceList{}
	rest := client.RESTClient()
	if rest == nil {
		return false, fmt.Errorf("asking the API server for %s: the discovery client has no RESTClient, as a fake", path)
	}
	err := rest.Get().AbsPath(path).Do(ctx).Into(found)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking the API server for %s: %w", path, err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
	}
	return has(RequestsResource().Resource) && has(EvictionsResource().Resource), nil
}
