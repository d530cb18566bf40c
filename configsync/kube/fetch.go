// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync"
)

type configMapFetcher struct{ caller }

// NewConfigMapFetcher returns what gets ConfigMaps. It may be used concurrently. The error names what is missing.
func NewConfigMapFetcher(client dynamic.Interface, o Options) (configsync.FollowFetcher, error) {
	c, err := newCaller("configsync/kube.NewConfigMapFetcher", client, o)
	if err != nil {
		return nil, fmt.Errorf("making a ConfigMap fetcher: %w", err)
	}
	return &configMapFetcher{c}, nil
}

// Fetch reads the ConfigMap that s names, from etcd, and checks that it is the one. Its errors are as [configsync.Fetcher] says, and
// [configsync.ErrMutable]. The Raw of the result is the object as the server sent it, metadata included, as JSON with sorted keys:
// equal versions have equal bytes.
func (f *configMapFetcher) Fetch(ctx context.Context, s configsync.Spec) (configsync.Object, error) {
	t := configMap(s)
	u, err := f.get(ctx, t)
	if err != nil {
		return configsync.Object{}, err
	}
	obj, err := objectOf(u)
	if err != nil {
		return configsync.Object{}, fmt.Errorf("reading %s: %w: %w", t, configsync.ErrMismatch, err)
	}
	if err := configsync.CheckObject(s, obj); err != nil {
		return configsync.Object{}, fmt.Errorf("checking %s: %w", t, err)
	}
	return obj, nil
}

// WatchObject calls changed when the ConfigMap was edited, deleted or created. It ends like [NodeConfigSource.Watch].
func (f *configMapFetcher) WatchObject(ctx context.Context, s configsync.Spec, changed func()) error {
	return f.watch(ctx, configMap(s), func(u *unstructured.Unstructured) string {
		return string(u.GetUID()) + " " + u.GetResourceVersion()
	}, changed)
}

func configMap(s configsync.Spec) target {
	return target{kind: "ConfigMap", namespace: s.Namespace, name: s.Name, resource: configMaps}
}

// objectOf turns what the server sent into an object.
func objectOf(u *unstructured.Unstructured) (configsync.Object, error) {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return configsync.Object{}, err
	}
	return configsync.ParseObject(raw)
}
