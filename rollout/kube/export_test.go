// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/rollout/controller"
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
