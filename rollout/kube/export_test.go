// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/rollout/controller"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// What the tests of this package tell errors apart by.
var (
	ErrDeleting     = errDeleting
	ErrNodeExists   = errNodeExists
	ErrNotRemovable = errNotRemovable
)

// NewDomainFleet is the fleet that RunController makes of a domain.
func NewDomainFleet(client dynamic.Interface, list func() []*corev1.Node, of labels.Selector, records controller.Shadows) controller.Fleet {
	return newFleet(client, list, of, records)
}

// WatchError is the error of a watch that lags.
type WatchError = watchError

// NewOwnShadowCache is the cache of RunAgent.
var NewOwnShadowCache = newOwnShadowCache

// Get reads the shadow of a node.
func (s *Shadows) Get(ctx context.Context, node string) (*v1alpha1.NodeShadow, error) {
	return s.read(ctx, node)
}

// Order writes the controller's part of a shadow.
func (s *Shadows) Order(ctx context.Context, read *v1alpha1.NodeShadow, o protocol.Orders) (*v1alpha1.NodeShadow, error) {
	return s.order(ctx, read, o)
}

// Report writes the agent's part of a shadow.
func (s *Shadows) Report(
	ctx context.Context, read *v1alpha1.NodeShadow, status v1alpha1.NodeShadowStatus, now time.Time,
) (*v1alpha1.NodeShadow, error) {
	return s.report(ctx, read, status, now)
}

// Delete removes the shadow of a Node that lives on.
func (s *Shadows) Delete(ctx context.Context, read *v1alpha1.NodeShadow) error {
	return s.deleteRemovable(ctx, read)
}

// Bury removes the shadow of a Node that is gone.
func (s *Shadows) Bury(ctx context.Context, read *v1alpha1.NodeShadow) error {
	return s.bury(ctx, read)
}

// FieldsRead are what is compared of an object.
var FieldsRead = fieldsRead
