// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// shadowFinalizer keeps a shadow until the node is at rest, or gone.
const shadowFinalizer = "rollout.belay.dev/shadow"

// What keeps a shadow from being removed.
var (
	// errNotRemovable: the node is not at rest, may still commit a grant, or its agent has not spoken. See [protocol.Shadow.Removable].
	errNotRemovable = errors.New("the shadow must not be removed yet")
	// errNodeExists: the Node that the shadow belongs to is there.
	errNodeExists = errors.New("the Node of the shadow exists")
)

// deleteRemovable removes the shadow of a Node that lives on, if it is removable; an error if not, and nothing is changed. If the shadow has stopped
// being removable by the time at which it is marked as deleted, it stays so marked, is granted nothing more, and a later Delete removes it.
func (s *Shadows) deleteRemovable(ctx context.Context, read *v1alpha1.NodeShadow) error {
	return s.remove(ctx, read, func(sh *v1alpha1.NodeShadow) error {
		if p := v1alpha1.ShadowOf(sh); !p.Removable() {
			return fmt.Errorf("%w: it is %q in attempt %d, granted %d, revoked up to %d, and its agent has spoken: %t", errNotRemovable,
				p.Report.Phase, p.Report.Attempt, p.Orders.Grant, p.Orders.Revoked, p.Report.Known)
		}
		return nil
	})
}

// bury removes the shadow of a Node that is gone, whatever it says; an error if the API server still has the Node of that UID. A
// Node of the same name and another UID is another one.
func (s *Shadows) bury(ctx context.Context, read *v1alpha1.NodeShadow) error {
	node, err := s.nodes.get(ctx, read.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("removing %s %q: %w", s.objects.kind, read.Name, err)
	case string(node.GetUID()) == read.Spec.NodeUID:
		return fmt.Errorf("removing %s %q: %w: its UID is %q", s.objects.kind, read.Name, errNodeExists, read.Spec.NodeUID)
	}
	return s.remove(ctx, read, func(*v1alpha1.NodeShadow) error { return nil })
}

// remove marks the shadow as deleted first, so that nobody grants anything in it, and then takes the finalizer from the version that may
// still be removed.
func (s *Shadows) remove(ctx context.Context, read *v1alpha1.NodeShadow, may func(*v1alpha1.NodeShadow) error) error {
	if err := may(read); err != nil {
		return fmt.Errorf("removing %s %q: %w", s.objects.kind, read.Name, err)
	}
	if read.DeletionTimestamp == nil {
		var err error
		if read, err = s.mark(ctx, read); read == nil || err != nil {
			return err
		}
	}
	if err := may(read); err != nil {
		return fmt.Errorf("removing %s %q: %w", s.objects.kind, read.Name, err)
	}
	is, err := s.objects.readFinalizers(ctx, read.Name)
	if err != nil {
		return err
	}
	rest := slices.DeleteFunc(is, func(f string) bool { return f == shadowFinalizer })
	_, err = s.merge(ctx, read, map[string]any{"metadata": map[string]any{"finalizers": rest}})
	return err
}

// mark deletes the version that was read, and returns what the finalizers have kept of it: nil if there were none.
func (s *Shadows) mark(ctx context.Context, read *v1alpha1.NodeShadow) (*v1alpha1.NodeShadow, error) {
	if err := s.delete(ctx, read); err != nil {
		return nil, err
	}
	kept, err := s.read(ctx, read.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && kept.UID != read.UID:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return kept, nil
}

func (s *Shadows) delete(ctx context.Context, read *v1alpha1.NodeShadow) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err := s.objects.client.Delete(ctx, read.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &read.UID, ResourceVersion: &read.ResourceVersion},
	})
	if apierrors.IsNotFound(err) {
		return nil // somebody was faster
	}
	return s.objects.written("deleting", read.Name, err)
}
