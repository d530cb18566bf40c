// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/option"
	listwatch "github.com/belayproject/belay/internal/watch"
)

// A LeaseWatcher lists and watches the Leases of one namespace. The LeaseInterface of client-go satisfies it.
type LeaseWatcher interface {
	List(ctx context.Context, opts metav1.ListOptions) (*coordinationv1.LeaseList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (apiwatch.Interface, error)
}

// NewInformer returns an informer of the Leases of the members of these components, of all components if none is given, in the namespace of
// leases. It leaves out what a View does not read: the managed fields and kubectl's copy of the last applied Lease. The caller runs it:
//
//	informer, err := identity.NewInformer(client.CoordinationV1().Leases(namespace), "belay-agent")
//	...
//	go informer.RunWithContext(ctx)
//
// Its watch goes on from where it was when a connection breaks; only an answer of the API server has it list again.
//
// It lists by a watch where client-go's feature WatchListClient is on. The typed clients of client-go's fake clientset can't do that: a test
// wraps them in a type with the method IsWatchListSemanticsUnSupported() bool, which returns true.
func NewInformer(leases LeaseWatcher, components ...string) (cache.SharedIndexInformer, error) {
	check := option.For("identity.NewInformer", nil)
	check.Require("leases", leases, "CoordinationV1().Leases(namespace) of client-go")
	if err := check.Err(); err != nil {
		return nil, err
	}
	selector, err := selectorOf(components)
	if err != nil {
		return nil, err
	}
	only := func(o *metav1.ListOptions) { o.LabelSelector = selector }
	informer := listwatch.NewTypedInformer[*coordinationv1.LeaseList](leases, &coordinationv1.Lease{}, only)
	if err := informer.SetTransform(slimObject); err != nil {
		return nil, fmt.Errorf("making the informer of Leases: %w", err)
	}
	return informer, nil
}

// selectorOf selects the Leases of members, and no others: a leader election does not write the label.
func selectorOf(components []string) (string, error) {
	operator := selection.In
	if len(components) == 0 {
		operator = selection.Exists
	}
	sorted := slices.Sorted(slices.Values(components))
	r, err := labels.NewRequirement(ComponentLabel, operator, sorted)
	if err != nil {
		return "", fmt.Errorf("informer of Leases: component: %w", err)
	}
	return r.String(), nil
}

// slimObject drops what a view does not read. The informer owns the object.
func slimObject(obj any) (any, error) {
	if lease, ok := obj.(*coordinationv1.Lease); ok {
		lease.ManagedFields = nil
		delete(lease.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return obj, nil
}
