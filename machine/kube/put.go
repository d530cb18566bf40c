// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/machine"
)

// put has change's effect on an object in the version that was read, but for its status, and on nothing else of it: what a newer version of the definitions has in
// it stays, but within a list that is changed, which is written whole. It is no merge patch, as what is null in a provider's config is to be null.
func (k kindOf[O, C]) put(ctx context.Context, client dynamic.Interface, key machine.Key, version string, change func(*O) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	u, err := k.raw(ctx, client, key, version)
	if err != nil {
		return err
	}
	if err := k.change(u, change); err != nil {
		return fmt.Errorf("%s %q: %w", k.kind, key, err)
	}
	_, err = client.Resource(k.resource).Namespace(key.Namespace).Update(ctx, u, metav1.UpdateOptions{FieldManager: FieldManager})
	return written(k.kind, key, err)
}

func (k kindOf[O, C]) change(u *unstructured.Unstructured, change func(*O) error) error {
	o := new(O)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return err
	}
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	if err := change(o); err != nil {
		return err
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	delete(before, "status")
	delete(after, "status")
	u.Object = changed(u.Object, before, after)
	return nil
}

// changed is what is, with what differs between before and after. What is in neither of these stays.
func changed(is, before, after map[string]any) map[string]any {
	next := maps.Clone(is)
	if next == nil {
		next = map[string]any{}
	}
	for k, was := range before {
		if _, stays := after[k]; stays {
			continue
		}
		mine, ok := next[k].(map[string]any)
		known, fields := was.(map[string]any)
		if rest := changed(mine, known, nil); ok && fields && len(rest) > 0 {
			next[k] = rest
		} else {
			delete(next, k)
		}
	}
	for k, v := range after {
		was, there := before[k]
		if there && reflect.DeepEqual(was, v) {
			continue
		}
		old, both := was.(map[string]any)
		fields, fieldsToo := v.(map[string]any)
		if mine, ok := next[k].(map[string]any); both && fieldsToo && ok {
			next[k] = changed(mine, old, fields)
		} else {
			next[k] = v
		}
	}
	return next
}
