// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"io/fs"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/rollout"
)

// fieldManager is the name under which this package writes.
const fieldManager = "belay-rollout"

// checkerFor collects what is missing in the arguments of a call of this package.
func checkerFor(call string) *option.Checker { return option.For("rollout/kube."+call, nil) }

const (
	clientRemedy = "see dynamic.NewForConfig"
	configRemedy = "see rest.InClusterConfig or clientcmd.BuildConfigFromFlags"
	domainRemedy = "spec.domain of the Rollouts"
	nodeRemedy   = "the name of the Node"
)

// objects are those of one kind, with the deadline of this package on each call.
type objects struct {
	kind   string
	client dynamic.ResourceInterface
}

// get reads an object as the storage has it: without a resourceVersion the API server answers with nothing older.
func (o objects) get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	u, err := o.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s %q: %w", o.kind, name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", o.kind, name, err)
	}
	return u, nil
}

// readFinalizers returns the finalizers of an object as the storage has it. It lists the object by its name, since the
// controller has no right to get it. An error for an object that is gone is a conflict, and [fs.ErrNotExist].
func (o objects) readFinalizers(ctx context.Context, name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := o.client.List(ctx, metav1.ListOptions{FieldSelector: metav1.ObjectNameField + "=" + name})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s %q: %w", o.kind, name, err)
	case len(list.Items) == 0:
		return nil, fmt.Errorf("reading %s %q: %w: %w", o.kind, name, rollout.ErrConflict, fs.ErrNotExist)
	}
	return list.Items[0].GetFinalizers(), nil
}

// create is strict: a field that the server would drop is an error.
func (o objects) create(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	made, err := o.client.Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict})
	return made, o.written("creating", u.GetName(), err)
}

// written says what an error of a write means. That the object is another one, is gone or is there already is a conflict.
func (o objects) written(doing, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return fmt.Errorf("%s %s %q: %w: %w", doing, o.kind, name, rollout.ErrConflict, err)
	}
	return fmt.Errorf("%s %s %q: %w", doing, o.kind, name, err)
}

// fields are those of a struct as JSON has them.
func fields(v any) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(v)
}

// difference is the JSON merge patch that makes to out of from: what neither of them knows stays.
func difference(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range from {
		if _, stays := to[name]; !stays {
			patch[name] = nil
		}
	}
	for name, want := range to {
		is := from[name]
		if reflect.DeepEqual(is, want) {
			continue
		}
		old, both := is.(map[string]any)
		if next, ok := want.(map[string]any); ok && both {
			patch[name] = difference(old, next)
			continue
		}
		patch[name] = want
	}
	return patch
}
