// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/demo/internal/story"
)

// Key is the entry of a ConfigMap that holds the kubelet's config.
const Key = "kubelet"

// Push makes an immutable ConfigMap of a config and has every NodeConfig name it. It returns how the cluster knows the config.
func (c *Cluster) Push(ctx context.Context, config story.Config) (story.Ref, error) {
	data := map[string]string{
		Key:                              config.Payload,
		configsync.KeyTrialDuration:      config.Trial.String(),
		configsync.KeyCrashLoopThreshold: strconv.Itoa(config.CrashLoopThreshold),
	}
	digest := configsync.Object{Data: data}.Digest()
	name := "kubelet-" + config.Name + "-" + strings.TrimPrefix(digest, "sha256:")[:8]
	immutable := true
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data, Immutable: &immutable}
	m, err := c.create(ctx, configMaps, c.namespace, object)
	if err != nil {
		return story.Ref{}, err
	}
	source := &v1alpha1.NodeConfigSource{ConfigMapRef: &v1alpha1.ConfigMapRef{
		Namespace: c.namespace, Name: name, UID: string(m.uid), Digest: digest, Key: Key,
	}}
	for _, n := range c.nodes {
		if err := c.assign(ctx, n, source); err != nil {
			return story.Ref{}, err
		}
	}
	return story.Ref{Name: name, UID: string(m.uid), Digest: digest}, nil
}

// assign sets the source of a NodeConfig. The UID in the patch makes the server refuse it for any other object of that name.
func (c *Cluster) assign(ctx context.Context, n made, source *v1alpha1.NodeConfigSource) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": n.uid},
		"spec":     map[string]any{"source": source},
	})
	if err != nil {
		return fmt.Errorf("assigning a config to %q: %w", n.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := c.client.Resource(n.resource).Patch(ctx, n.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("assigning a config to %q: %w", n.name, err)
	}
	return nil
}
