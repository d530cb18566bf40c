// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// errDeleting means that a shadow is being deleted, and so is granted nothing any more.
var errDeleting = errors.New("the shadow is being deleted")

// Shadows are the NodeShadows of a cluster. Every write is a compare-and-swap on the version that is passed with it: [rollout.ErrConflict]
// means that the shadow is not that version any more, is gone, or is another one of the same name, and that nothing was written. After any
// other error it may have been.
type Shadows struct {
	objects objects
	nodes   objects
	domain  string
}

// NewShadows returns the NodeShadows that the client can see, of all disruption domains. What it creates is of none: see In.
func NewShadows(client dynamic.Interface) (*Shadows, error) {
	check := checkerFor("NewShadows")
	check.Require("client", client, clientRemedy)
	if err := check.Err(); err != nil {
		return nil, err
	}
	return &Shadows{
		objects: objects{v1alpha1.NodeShadowKind, client.Resource(v1alpha1.NodeShadowsResource)},
		nodes:   objects{"Node", client.Resource(nodesResource())},
	}, nil
}

// In returns the shadows of one disruption domain: those that it creates are of that domain, and it lists no others.
func (s *Shadows) In(domain string) *Shadows {
	if s.objects.client == nil {
		return nil
	}
	one := *s
	one.domain = domain
	return &one
}

// has reports whether a shadow is one of the domain.
func (s *Shadows) has(sh *v1alpha1.NodeShadow) bool {
	return s.domain == "" || sh.Spec.Domain == s.domain
}

// read returns the shadow of the node of that name, of whatever incarnation. It is fs.ErrNotExist if there is none.
func (s *Shadows) read(ctx context.Context, node string) (*v1alpha1.NodeShadow, error) {
	u, err := s.objects.get(ctx, node)
	if err != nil {
		return nil, err
	}
	return shadowIn(u)
}

// List returns all shadows of the domain, by one call.
func (s *Shadows) List(ctx context.Context) ([]v1alpha1.NodeShadow, error) {
	if s.objects.client == nil {
		return nil, option.NotMade("rollout/kube.Shadows.List", "rollout/kube.NewShadows")
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := s.objects.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing %ss: %w", s.objects.kind, err)
	}
	all := make([]v1alpha1.NodeShadow, 0, len(list.Items))
	for i := range list.Items {
		sh, err := shadowIn(&list.Items[i])
		if err != nil {
			return nil, err
		}
		if s.has(sh) {
			all = append(all, *sh)
		}
	}
	return all, nil
}

// Create makes the shadow of a Node that has none, see [protocol.NewShadow]: it belongs to the Node, and is removed with it, but
// not before the finalizer is. What the report says is not stored: that is the agent's.
func (s *Shadows) Create(ctx context.Context, sh protocol.Shadow) (*v1alpha1.NodeShadow, error) {
	if s.objects.client == nil {
		return nil, option.NotMade("rollout/kube.Shadows.Create", "rollout/kube.NewShadows")
	}
	made := v1alpha1.NodeShadow{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.NodeShadowKind},
		ObjectMeta: metav1.ObjectMeta{
			Name: sh.Node, Finalizers: []string{shadowFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: sh.Node, UID: types.UID(sh.UID)}},
		},
		Spec: v1alpha1.NodeShadowSpec{NodeUID: sh.UID, Domain: s.domain},
	}
	made.Spec.SetOrders(sh.Orders)
	object, err := fields(&made)
	if err != nil {
		return nil, fmt.Errorf("creating %s %q: %w", s.objects.kind, sh.Node, err)
	}
	delete(object, "status")
	u, err := s.objects.create(ctx, &unstructured.Unstructured{Object: object})
	if err != nil {
		return nil, err
	}
	return shadowIn(u)
}

// order makes o the orders of the shadow that was read, and returns the next version. It is for controllers. Orders that are given already
// write nothing. A shadow that is being deleted gets no higher grant: an error.
func (s *Shadows) order(ctx context.Context, read *v1alpha1.NodeShadow, o protocol.Orders) (*v1alpha1.NodeShadow, error) {
	if read.DeletionTimestamp != nil && o.Grant > v1alpha1.OrdersOf(read.Spec).Grant {
		return nil, fmt.Errorf("granting attempt %d in %s %q: %w", o.Grant, s.objects.kind, read.Name, errDeleting)
	}
	next := read.Spec
	next.SetOrders(o)
	return s.patch(ctx, read, "spec", &read.Spec, &next)
}

// report makes status the status of the shadow that was read, and returns the next version. It is for the node's agent. A status that is there
// already writes nothing. The condition [v1alpha1.ConditionAtRest] is made of what the status says, and need not be in it; now is the
// time at which it may have changed, for people.
func (s *Shadows) report(ctx context.Context, read *v1alpha1.NodeShadow, status v1alpha1.NodeShadowStatus, now time.Time) (*v1alpha1.NodeShadow, error) {
	next := status.DeepCopy()
	if next.Conditions == nil {
		next.Conditions = read.Status.DeepCopy().Conditions
	}
	meta.SetStatusCondition(&next.Conditions, atRest(next, now))
	return s.patch(ctx, read, "status", &read.Status, next, "status")
}

func atRest(s *v1alpha1.NodeShadowStatus, now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionAtRest, Status: metav1.ConditionFalse, Reason: string(s.Phase), Message: s.Message,
		LastTransitionTime: metav1.NewTime(now),
	}
	if protocol.Phase(s.Phase).AtRest() {
		c.Status = metav1.ConditionTrue
	}
	switch {
	case !s.Known:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonUnknown
	case s.Phase == "":
		c.Reason = v1alpha1.ReasonUntouched
	}
	return c
}

// patch writes what differs in one part of a shadow, so that fields which only another version of this package knows stay as they are.
func (s *Shadows) patch(ctx context.Context, read *v1alpha1.NodeShadow, part string, from, to any, subresource ...string) (*v1alpha1.NodeShadow, error) {
	is, err := fields(from)
	if err != nil {
		return nil, fmt.Errorf("writing %s %q: %w", s.objects.kind, read.Name, err)
	}
	want, err := fields(to)
	if err != nil {
		return nil, fmt.Errorf("writing %s %q: %w", s.objects.kind, read.Name, err)
	}
	change := difference(is, want)
	if len(change) == 0 {
		return read, nil
	}
	return s.merge(ctx, read, map[string]any{part: change}, subresource...)
}

// merge sends a merge patch of the version that was read.
func (s *Shadows) merge(ctx context.Context, read *v1alpha1.NodeShadow, patch map[string]any, subresource ...string) (*v1alpha1.NodeShadow, error) {
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"], metadata["uid"] = read.ResourceVersion, string(read.UID)
	patch["metadata"] = metadata
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("writing %s %q: %w", s.objects.kind, read.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	options := metav1.PatchOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	u, err := s.objects.client.Patch(ctx, read.Name, types.MergePatchType, body, options, subresource...)
	if err := s.objects.written("writing", read.Name, err); err != nil {
		return nil, err
	}
	return shadowIn(u)
}

func shadowIn(u *unstructured.Unstructured) (*v1alpha1.NodeShadow, error) {
	var sh v1alpha1.NodeShadow
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &sh); err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", v1alpha1.NodeShadowKind, u.GetName(), err)
	}
	return &sh, nil
}
