// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/v1alpha1"
)

// SourceAnnotation is the annotation of a Node that holds a NodeConfigSource as JSON.
const SourceAnnotation = "configsync.belay.dev/source"

type annotationSource struct {
	caller
	target target
}

// NewAnnotationSource returns what takes the wanted config of a node from [SourceAnnotation] of the Node. No
// annotation asks for the local config.
//
// It needs no CustomResourceDefinition, but the API server checks nothing, and a node may edit its own annotations:
// an attacker on a node decides what it runs. Prefer [NodeConfigSource].
//
// It may be used concurrently. The error names what is missing.
func NewAnnotationSource(client dynamic.Interface, node string, o Options) (configsync.Source, error) {
	c, err := newNodeCaller("configsync/kube.NewAnnotationSource", client, node, o)
	if err != nil {
		return nil, fmt.Errorf("making an annotation source: %w", err)
	}
	return &annotationSource{c, nodeOf(node)}, nil
}

func nodeOf(name string) target { return target{kind: "Node", name: name, resource: nodes} }

// Desired reads the Node. Errors are as [configsync.Source] says.
func (s *annotationSource) Desired(ctx context.Context) (*configsync.Spec, error) {
	u, err := s.get(ctx, s.target)
	if err != nil {
		return nil, err
	}
	raw, found := u.GetAnnotations()[SourceAnnotation]
	if !found {
		return nil, nil
	}
	return specFrom([]byte(raw), fmt.Sprintf("metadata.annotations[%q]", SourceAnnotation), 0)
}

// Watch calls changed when the Node is another one or the annotation changed. It ends like [NodeConfigSource.Watch].
func (s *annotationSource) Watch(ctx context.Context, changed func()) error {
	return s.watch(ctx, s.target, func(u *unstructured.Unstructured) string {
		raw, found := u.GetAnnotations()[SourceAnnotation]
		return fmt.Sprintf("%s %t %s", u.GetUID(), found, raw)
	}, changed)
}

type legacySource struct {
	caller
	target target
}

// NewLegacySource returns what takes the wanted config of a node from Node.spec.configSource. No such field asks for
// the local config.
//
// API servers since 1.26 drop the field when it is written, without a word; a value that was stored before stays. So
// setting it there has no effect that a node could see or report. It is for servers that keep the field.
//
// The field has neither digest nor policy. Those servers' nodes followed edits in place, and so does this source.
//
// It may be used concurrently. The error names what is missing.
func NewLegacySource(client dynamic.Interface, node string, o Options) (configsync.Source, error) {
	c, err := newNodeCaller("configsync/kube.NewLegacySource", client, node, o)
	if err != nil {
		return nil, fmt.Errorf("making a legacy source: %w", err)
	}
	return &legacySource{c, nodeOf(node)}, nil
}

// Desired reads the Node. Errors are as [configsync.Source] says.
func (s *legacySource) Desired(ctx context.Context) (*configsync.Spec, error) {
	u, err := s.get(ctx, s.target)
	if err != nil {
		return nil, err
	}
	value, _, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "configSource")
	if err == nil && value == nil {
		return nil, nil
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, &configsync.InvalidError{Field: "spec.configSource", Problem: "it must be an object"}
	}
	var src corev1.NodeConfigSource
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &src); err != nil {
		return nil, &configsync.InvalidError{Field: "spec.configSource", Problem: "it is malformed"}
	}
	return legacySpec(src)
}

func legacySpec(src corev1.NodeConfigSource) (*configsync.Spec, error) {
	if src.ConfigMap == nil {
		return nil, &configsync.InvalidError{Problem: noSubfield}
	}
	r := src.ConfigMap
	ref := &v1alpha1.ConfigMapRef{
		Namespace: r.Namespace, Name: r.Name, UID: string(r.UID), Key: r.KubeletConfigKey, Policy: v1alpha1.PolicyFollow,
	}
	spec, err := SourceToSpec(&v1alpha1.NodeConfigSource{ConfigMapRef: ref}, 0)
	var invalid *configsync.InvalidError
	if errors.As(err, &invalid) {
		field := "spec.configSource.configMap" + strings.TrimPrefix(invalid.Field, configMapRef)
		return nil, &configsync.InvalidError{Field: field, Problem: invalid.Problem}
	}
	return spec, err
}

// Watch calls changed when the Node is another one or the field changed. It ends like [NodeConfigSource.Watch].
func (s *legacySource) Watch(ctx context.Context, changed func()) error {
	return s.watch(ctx, s.target, func(u *unstructured.Unstructured) string {
		value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "configSource")
		raw, _ := json.Marshal(value) // it came as JSON
		return fmt.Sprintf("%s %s", u.GetUID(), raw)
	}, changed)
}
