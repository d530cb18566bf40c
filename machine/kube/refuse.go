// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/v1alpha1"
)

// refuse says on a machine whose spec can't be understood that it can't, and why, of the generation that it is of. One that can be is left alone, and so is one
// that says so already.
func (s *machineStore) refuse(ctx context.Context, key machine.Key) error {
	seen := s.seen(key)
	if seen == nil {
		return nil
	}
	_, why := seen.Core()
	if why == nil {
		return nil
	}
	o := seen.DeepCopy()
	patch, changes, err := statusPatch(o, func() { o.SetInvalid(why, time.Now()) })
	if err != nil || !changes {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	u, err := s.of(key).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	if err != nil {
		return failed("store the status of", key, err)
	}
	_, err = s.wrote(key, u)
	return err
}

// refuse is that of a namespace's sets, deployments and health checks.
func (g *groupStore) refuse(ctx context.Context, namespace string) error {
	now := time.Now()
	return errors.Join(
		g.deployments.refuse(ctx, g.client, namespace, func(o *v1alpha1.MachineDeployment, why error) { o.SetInvalid(why, now) }),
		g.sets.refuse(ctx, g.client, namespace, func(o *v1alpha1.MachineSet, why error) { o.SetInvalid(why, now) }),
		g.checks.refuse(ctx, g.client, namespace, func(o *v1alpha1.MachineHealthCheck, why error) { o.SetInvalid(why, now) }),
	)
}

func (k kindOf[O, C]) refuse(ctx context.Context, client dynamic.Interface, namespace string, set func(*O, error)) error {
	objects, err := k.objects(ctx, client, namespace, false)
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range objects {
		if _, why := k.core(o); why != nil {
			errs = append(errs, k.refuseOne(ctx, client, o, func(o *O) { set(o, why) }))
		}
	}
	return errors.Join(errs...)
}

func (k kindOf[O, C]) refuseOne(ctx context.Context, client dynamic.Interface, seen *O, set func(*O)) error {
	o, err := copied(seen)
	if err != nil {
		return err
	}
	patch, changes, err := k.statusPatch(o, set)
	meta, ok := any(o).(metav1.Object)
	if err != nil || !changes || !ok {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	key := machine.Key{Namespace: meta.GetNamespace(), Name: meta.GetName()}
	_, err = client.Resource(k.resource).Namespace(key.Namespace).
		Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	return written(k.kind, key, err)
}

// refusing has what can't be understood told so after an error.
func refusing[K any](reconcile func(context.Context, K) (time.Duration, error), refuse func(context.Context, K) error) func(context.Context, K) (time.Duration, error) {
	return func(ctx context.Context, key K) (time.Duration, error) {
		after, err := reconcile(ctx, key)
		if err != nil && ctx.Err() == nil {
			err = errors.Join(err, refuse(ctx, key))
		}
		return after, err
	}
}
