// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/machine"
)

// statusPatch is the merge patch of the version that was read that has change's effect on the status of o, and on nothing else: what a newer version keeps
// there is in neither of the two that are compared, and so it stays. changes is false if there is no effect.
func statusPatch(o metav1.Object, change func()) (patch []byte, changes bool, err error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, false, err
	}
	uid, version := o.GetUID(), o.GetResourceVersion()
	change()
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, false, err
	}
	status := mergePatch(fieldsOf(before["status"]), fieldsOf(after["status"]))
	patch, err = json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid, "resourceVersion": version}, "status": status,
	})
	return patch, len(status) > 0, err
}

func fieldsOf(v any) map[string]any {
	m, _ := v.(map[string]any) // none before the first write
	return m
}

// mergePatch makes after of before. Lists are written whole.
func mergePatch(before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for k, v := range after {
		was, there := before[k]
		old, both := was.(map[string]any)
		next, fields := v.(map[string]any)
		switch {
		case there && reflect.DeepEqual(was, v):
		case both && fields:
			patch[k] = mergePatch(old, next)
		default:
			patch[k] = v
		}
	}
	for k := range before {
		if _, stays := after[k]; !stays {
			patch[k] = nil
		}
	}
	return patch
}

// putStatus writes the status that change gives to an object in the version that was read.
func (k kindOf[O, C]) putStatus(ctx context.Context, client dynamic.Interface, key machine.Key, version string, change func(*O)) (c C, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	o, err := k.base(ctx, client, key, version)
	if err != nil {
		return c, err
	}
	patch, _, err := k.statusPatch(o, change)
	if err != nil {
		return c, err
	}
	u, err := client.Resource(k.resource).Namespace(key.Namespace).
		Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	if err != nil {
		return c, written(k.kind, key, err)
	}
	next := new(O)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, next); err != nil {
		return c, fmt.Errorf("%s %q: %w", k.kind, key, err)
	}
	return k.core(next)
}

func (k kindOf[O, C]) statusPatch(o *O, change func(*O)) (patch []byte, changes bool, err error) {
	meta, ok := any(o).(metav1.Object)
	if !ok {
		return nil, false, fmt.Errorf("%s: it has no metadata", k.kind)
	}
	if patch, changes, err = statusPatch(meta, func() { change(o) }); err != nil {
		return nil, false, fmt.Errorf("%s %q: %w", k.kind, meta.GetName(), err)
	}
	return patch, changes, nil
}
