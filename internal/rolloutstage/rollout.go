// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rolloutstage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// Begin makes a Revision and a Rollout that brings the fleet to it, under its cap; change may add to that.
func (f *Fleet) Begin(ctx context.Context, revision string, change func(*v1alpha1.RolloutSpec)) error {
	pinned, err := f.revision(ctx, revision)
	if err != nil {
		return err
	}
	spec := v1alpha1.RolloutSpec{
		Domain: Domain, Revision: pinned, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": Domain}},
		Caps: []v1alpha1.Cap{{Scope: v1alpha1.Scope(rollout.Total), Max: intstr.FromInt(f.Cap)}},
	}
	if change != nil {
		change(&spec)
	}
	return f.create(ctx, v1alpha1.RolloutsResource, v1alpha1.RolloutKind, Domain, &v1alpha1.Rollout{Spec: spec})
}

// Turn makes a Revision, and has the Rollout bring the fleet to that.
func (f *Fleet) Turn(ctx context.Context, revision string) error {
	pinned, err := f.revision(ctx, revision)
	if err != nil {
		return err
	}
	return f.patch(ctx, map[string]any{"revision": pinned})
}

// Ask has somebody ask for something, and returns the ID of the request.
func (f *Fleet) Ask(ctx context.Context, v v1alpha1.Verb) (request string, err error) {
	v.Request = fmt.Sprintf("%s-%d", v.Do, time.Now().UnixNano())
	return v.Request, f.patch(ctx, map[string]any{"verb": v})
}

// Rollout reads the Rollout.
func (f *Fleet) Rollout(ctx context.Context) (*v1alpha1.Rollout, error) {
	u, err := f.Client.Resource(v1alpha1.RolloutsResource).Get(ctx, Domain, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var r v1alpha1.Rollout
	return &r, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r)
}

// Completed returns nil when the rollout to a revision is over: see [Fleet.Over].
func (f *Fleet) Completed(ctx context.Context, revision string) error {
	r, err := f.Rollout(ctx)
	if err != nil {
		return err
	}
	about := ""
	if r.Status.Revision != nil {
		about = r.Status.Revision.Name
	}
	if about != revision || r.Status.ObservedGeneration != r.Generation || r.Status.Phase != v1alpha1.RolloutPhase(rollout.Completed) {
		return fmt.Errorf("the rollout of %q is %s: %s", about, r.Status.Phase, r.Status.Message)
	}
	return f.Over(ctx)
}

func (f *Fleet) patch(ctx context.Context, spec map[string]any) error {
	body, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	_, err = f.Client.Resource(v1alpha1.RolloutsResource).Patch(ctx, Domain, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// revision makes a Revision for nodes that are drained, and returns how a Rollout names it.
func (f *Fleet) revision(ctx context.Context, name string) (v1alpha1.PinnedRevision, error) {
	pinned := v1alpha1.PinnedRevision{Name: name, Digest: v1alpha1.OpaqueDigest(name)}
	object := &v1alpha1.Revision{Spec: v1alpha1.RevisionSpec{Digest: pinned.Digest, Opaque: name}}
	return pinned, f.create(ctx, v1alpha1.RevisionsResource, v1alpha1.RevisionKind, name, object)
}

func (f *Fleet) create(ctx context.Context, resource schema.GroupVersionResource, kind, name string, object any) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	delete(fields, "status")
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetName(name)
	_, err = f.Client.Resource(resource).Create(ctx, u, metav1.CreateOptions{})
	return err
}
