// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/configsync"
	configapi "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

type resource = schema.GroupVersionResource

var definitions = resource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// The stages: canaries, then a part of the fleet, then the rest.
const (
	secondStage = "30%"
	// soak is how long nothing may go wrong after the last node of a stage.
	soak = 2 * time.Second
)

// A Plan says how a rollout goes over the fleet.
type Plan struct {
	// Cap is how many nodes may be away at a time.
	Cap int
	// StopAt is how many failed nodes stop it.
	StopAt int
}

// PlanFor is the plan for so many nodes: a fifth of a small fleet may be away at a time, a tenth of a large one.
func PlanFor(nodes int) Plan {
	const large = 100
	part := 5
	if nodes > large {
		part = 10
	}
	return Plan{Cap: max(1, nodes/part), StopAt: 3}
}

// A Revision is a config as a rollout names it.
type Revision = v1alpha1.PinnedRevision

// Publish makes an immutable ConfigMap of a config, and the Revision that stands for it. What is there already under that name is taken for it: whether it
// is shows in its digest, which every agent checks.
func (f *Fleet) Publish(ctx context.Context, name string, data map[string]string) (Revision, error) {
	digest := configsync.DigestOf(data)
	err := f.call(ctx, func(ctx context.Context) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data, Immutable: new(true)}
		_, err := f.core.CoreV1().ConfigMaps(Namespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return Revision{}, fmt.Errorf("creating ConfigMap %q: %w", name, err)
	}
	spec := v1alpha1.RevisionSpec{Digest: digest, ConfigMapRef: &configapi.ConfigMapRef{Namespace: Namespace, Name: name, Digest: digest}}
	u, err := object(v1alpha1.RevisionKind, name, &v1alpha1.Revision{Spec: spec})
	if err != nil {
		return Revision{}, err
	}
	if err = f.create(ctx, v1alpha1.RevisionsResource, "", u); apierrors.IsAlreadyExists(err) {
		err = nil
	}
	return Revision{Name: name, Digest: digest}, err
}

// Begin makes the Rollout.
func (f *Fleet) Begin(ctx context.Context, r Revision, p Plan) error {
	spec := v1alpha1.RolloutSpec{
		Domain: Name, Revision: r,
		Groups: []v1alpha1.Group{
			{Name: "canaries", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{canaryLabel: "true"}}},
			{Name: "others", Selector: &metav1.LabelSelector{}},
		},
		Stages: []v1alpha1.Stage{
			{Name: "canaries", Groups: []string{"canaries"}, Soak: &metav1.Duration{Duration: soak}},
			{Name: "some", Size: new(intstr.FromString(secondStage)), Soak: &metav1.Duration{Duration: soak}},
			{Name: "rest"},
		},
		Caps:      []v1alpha1.Cap{{Scope: v1alpha1.Scope(rollout.Total), Max: intstr.FromInt(p.Cap)}},
		Detectors: []v1alpha1.Detector{{Failures: &v1alpha1.Failures{At: intstr.FromInt(p.StopAt)}}},
		Rollback:  &v1alpha1.RollbackPlan{Stages: []v1alpha1.Stage{{Name: "all"}}},
		Attempts:  1, // a node on which a revision has failed is not tried again
	}
	u, err := object(v1alpha1.RolloutKind, Name, &v1alpha1.Rollout{Spec: spec})
	if err != nil {
		return err
	}
	return f.create(ctx, v1alpha1.RolloutsResource, "", u)
}

// Turn has the Rollout bring the fleet to another revision.
func (f *Fleet) Turn(ctx context.Context, r Revision) error {
	return f.patch(ctx, map[string]any{"revision": r})
}

// Back has the Rollout bring the fleet back to an entry of its history.
func (f *Fleet) Back(ctx context.Context, number int64) error {
	return f.patch(ctx, map[string]any{"verb": v1alpha1.Verb{Request: fmt.Sprintf("demo-back-to-%d", number), Do: v1alpha1.DoRollback, Number: number}})
}

func (f *Fleet) patch(ctx context.Context, spec map[string]any) error {
	body, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return fmt.Errorf("changing the Rollout: %w", err)
	}
	err = f.call(ctx, func(ctx context.Context) error {
		_, err := f.client.Resource(v1alpha1.RolloutsResource).Patch(ctx, Name, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("changing the Rollout: %w", err)
	}
	return nil
}

func (f *Fleet) create(ctx context.Context, r resource, namespace string, u *unstructured.Unstructured) error {
	err := f.call(ctx, func(ctx context.Context) error {
		_, err := f.client.Resource(r).Namespace(namespace).Create(ctx, u, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating %s %q: %w", r.Resource, u.GetName(), err)
	}
	return nil
}

// object is one of the rollout's API, without a status.
func object(kind, name string, typed any) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", kind, name, err)
	}
	delete(fields, "status")
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetName(name)
	return u, nil
}

func decode(manifest []byte) (*unstructured.Unstructured, error) {
	var u unstructured.Unstructured
	if err := yaml.Unmarshal(manifest, &u.Object); err != nil {
		return nil, fmt.Errorf("reading a resource definition: %w", err)
	}
	return &u, nil
}
