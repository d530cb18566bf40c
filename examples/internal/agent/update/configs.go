// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	configapi "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// Revisions finds each config in the ConfigMap that the Revision of its name stands for. A Revision of another digest than the
// one that was ordered is refused, and so is one that stands for no config.
func Revisions(client dynamic.Interface) configsync.Finder {
	return func(ctx context.Context, name, digest string) (configsync.Spec, error) {
		u, err := client.Resource(v1alpha1.RevisionsResource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return configsync.Spec{}, fmt.Errorf("reading Revision %q: %w", name, kube.Classified(err))
		}
		var r v1alpha1.Revision
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r); err != nil {
			return configsync.Spec{}, fmt.Errorf("reading Revision %q: %w", name, err)
		}
		return specOf(&r, digest)
	}
}

// specOf is pure.
func specOf(r *v1alpha1.Revision, digest string) (s configsync.Spec, err error) {
	if digest != "" && r.Spec.Digest != digest {
		return s, fmt.Errorf("%w: revision %q has digest %s, want %s, which was ordered", configsync.ErrMismatch, r.Name, r.Spec.Digest, digest)
	}
	if r.Spec.ConfigMapRef == nil {
		return s, fmt.Errorf("revision %q has no spec.configMapRef: it stands for no config", r.Name)
	}
	ref := *r.Spec.ConfigMapRef
	if ref.Digest == "" {
		ref.Digest = r.Spec.Digest
	}
	spec, err := kube.SourceToSpec(&configapi.NodeConfigSource{ConfigMapRef: &ref}, 0)
	if err == nil && spec.Digest != r.Spec.Digest {
		err = errors.New("digest: it must be that of the Revision")
	}
	if err != nil {
		return s, fmt.Errorf("revision %q: %w", r.Name, err)
	}
	return *spec, nil
}
