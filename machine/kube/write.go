// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// base is the object in the version that was read: what of it is not ours stays as it is. Another version is a conflict.
func (s *machineStore) base(ctx context.Context, m machine.Machine) (*v1alpha1.Machine, error) {
	seen := s.seen(m.Key)
	if seen == nil || seen.ResourceVersion != m.Version {
		var err error
		if seen, err = s.live(ctx, m.Key); err != nil {
			return nil, err
		}
	}
	if seen.ResourceVersion != m.Version || string(seen.UID) != m.UID {
		return nil, fmt.Errorf("machine %q is at version %s, and %s was read: %w", m.Key, seen.ResourceVersion, m.Version, controller.ErrConflict)
	}
	return seen.DeepCopy(), nil
}

// PutStatus implements [controller.Machines]. The conditions follow.
func (s *machineStore) PutStatus(ctx context.Context, m machine.Machine) (machine.Machine, error) {
	o, err := s.base(ctx, m)
	if err != nil {
		return m, err
	}
	var node *machine.Node
	if s.nodeOf != nil {
		node = s.nodeOf(m)
	}
	patch, _, err := statusPatch(o, func() { o.SetStatus(m, node, time.Now()) })
	if err != nil {
		return m, fmt.Errorf("machine %q: %w", m.Key, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	u, err := s.of(m.Key).Patch(ctx, m.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	return s.answer("store the status of", m, u, err)
}

func (s *machineStore) answer(doing string, m machine.Machine, u *unstructured.Unstructured, err error) (machine.Machine, error) {
	if err != nil {
		return m, failed(doing, m.Key, err)
	}
	o, err := s.wrote(m.Key, u)
	if err != nil {
		return m, err
	}
	return o.Core()
}

// SetFinalizer implements [controller.Machines]. Finalizers of others stay.
func (s *machineStore) SetFinalizer(ctx context.Context, m machine.Machine, on bool) (machine.Machine, error) {
	o, err := s.base(ctx, m)
	if err != nil {
		return m, err
	}
	finalizers := slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == v1alpha1.Finalizer })
	if on {
		finalizers = append(finalizers, v1alpha1.Finalizer)
	}
	return s.patch(ctx, "change the finalizers of", m, map[string]any{"finalizers": finalizers}, nil)
}

// SetProviderID implements [controller.Machines].
func (s *machineStore) SetProviderID(ctx context.Context, m machine.Machine, id string) (machine.Machine, error) {
	return s.patch(ctx, "write the ProviderID of", m, map[string]any{}, map[string]any{"providerID": id})
}

// patch changes metadata and spec of the version that was read.
func (s *machineStore) patch(ctx context.Context, doing string, m machine.Machine, meta, spec map[string]any) (machine.Machine, error) {
	meta["uid"], meta["resourceVersion"] = m.UID, m.Version
	body := map[string]any{"metadata": meta}
	if spec != nil {
		body["spec"] = spec
	}
	data, err := json.Marshal(body)
	if err != nil {
		return m, fmt.Errorf("%s machine %q: %w", doing, m.Key, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	u, err := s.of(m.Key).Patch(ctx, m.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: FieldManager})
	return s.answer(doing, m, u, err)
}
