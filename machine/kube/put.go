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
// it stays, also in an item of a list that is changed, where the item is found again by its key: of taints, hooks and owners. Of other lists nothing is known beyond
// their text, and one that is changed is written whole. It is no merge patch, as what is null in a provider's config is to be null.
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
			next[k] = items(mergeKeys(k), next[k], was, v)
		}
	}
	return next
}

// mergeKeys are the fields by which an item of that list is found again, as its definition says; none if there are no such fields. Within a provider's config the name may be
// that of another list: nothing of that is unknown, so that the outcome is the same.
func mergeKeys(list string) []string {
	switch list {
	case "taints":
		return []string{"key", "effect"}
	case "hooks":
		return []string{"name"}
	case "ownerReferences":
		return []string{"uid"}
	}
	return nil
}

// items is the list after, whose items keep what is in neither before nor after. A list whose items can't be told apart is as it was decided.
func items(keys []string, is, before, after any) any {
	mine, old, next := byKeys(keys, is), byKeys(keys, before), byKeys(keys, after)
	list, ok := after.([]any)
	if mine == nil || old == nil || next == nil || !ok {
		return after
	}
	out := make([]any, 0, len(list))
	for _, item := range list {
		fields, _ := item.(map[string]any) // byKeys has looked
		key := keyOf(keys, fields)
		if m, stays := mine[key], old[key]; m != nil && stays != nil {
			fields = changed(m, stays, fields)
		}
		out = append(out, fields)
	}
	return out
}

// byKeys are the items of a list; nil if not all are objects with keys of their own.
func byKeys(keys []string, list any) map[string]map[string]any {
	all, ok := list.([]any)
	if !ok || len(keys) == 0 {
		return nil
	}
	found := make(map[string]map[string]any, len(all))
	for _, item := range all {
		fields, _ := item.(map[string]any)
		key := keyOf(keys, fields)
		if key == "" || found[key] != nil {
			return nil
		}
		found[key] = fields
	}
	return found
}

// keyOf is what an item is found by; empty if it lacks a part of that.
func keyOf(keys []string, item map[string]any) string {
	values := make([]string, 0, len(keys))
	for _, k := range keys {
		v, ok := item[k].(string)
		if !ok {
			return ""
		}
		values = append(values, v)
	}
	return fmt.Sprintf("%q", values)
}
