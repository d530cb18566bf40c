// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	configv1alpha1 "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// nodeConfigs points Nodes at config sources.
type nodeConfigs struct{ client dynamic.Interface }

var _ Configs = (*nodeConfigs)(nil)

// NewConfigs returns what points Nodes at config sources, by the NodeConfig objects of the workload cluster, which
// package configsync reads. An error says that client is missing.
func NewConfigs(client dynamic.Interface) (Configs, error) {
	err := option.CheckRequired("machine/kube.NewConfigs", "client", client, "see dynamic.NewForConfig")
	if err != nil {
		return nil, err
	}
	return &nodeConfigs{client}, nil
}

// Point implements [Configs], by an apply: fields of others stay. A source that somebody else has applied is a conflict.
func (c *nodeConfigs) Point(ctx context.Context, n machine.NodeRef, source []byte) error {
	applied := map[string]any{} // what was ours and is left out goes
	if len(source) > 0 {
		var fields map[string]any
		if err := json.Unmarshal(source, &fields); err != nil {
			return fmt.Errorf("config source of Node %q: it is no JSON object: %w", n.Name, err)
		}
		applied["spec"] = map[string]any{"source": fields}
	}
	o := &unstructured.Unstructured{Object: applied}
	o.SetAPIVersion(configv1alpha1.GroupVersion.String())
	o.SetKind("NodeConfig")
	o.SetName(n.Name)
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: uidOf(n)}})
	_, err := c.client.Resource(configv1alpha1.GroupVersion.WithResource("nodeconfigs")).Apply(ctx, n.Name, o, metav1.ApplyOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("config source of Node %q: %w", n.Name, err)
	}
	return nil
}

var _ controller.Secrets = Secrets{}

// Secrets are those of the cluster of the machines. They are read when they are needed, and not kept.
type Secrets struct{ Client kubernetes.Interface }

// Secret implements [controller.Secrets].
func (s Secrets) Secret(ctx context.Context, key machine.Key) (map[string][]byte, error) {
	err := option.CheckRequired("machine/kube.Secrets.Secret", "Secrets.Client", s.Client, "see kubernetes.NewForConfig")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	secret, err := s.Client.CoreV1().Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("secret %q: %w", key, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("secret %q: %w", key, err)
	}
	return secret.Data, nil
}
