// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/watch"
	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// Run implements [LedgerStore].
func (s *ledgerStore) Run(ctx context.Context, changed func()) error {
	if err := option.CheckRequired(
		"rollout/kube.LedgerStore.Run", "changed", changed, "what looks at the ledger",
	); err != nil {
		return err
	}
	informer := watch.NewInformer(s.client, v1alpha1.DisruptionLedgersResource, metav1.NamespaceAll, cache.Indexers{}, watch.SelectName(s.name))
	see := func(obj any) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			s.remember(u)
			changed()
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(_, next any) { see(next) }, DeleteFunc: func(any) {
			s.forget()
			changed()
		},
	})
	if err != nil {
		return fmt.Errorf("watching %s %q: %w", s.objects.kind, s.name, err)
	}
	health := &watchState{resource: v1alpha1.DisruptionLedgersResource.Resource, informer: informer}
	if err := health.begin(); err != nil {
		return err
	}
	s.watched(health)
	defer s.watched(nil)
	informer.RunWithContext(ctx)
	return nil
}

func (s *ledgerStore) watched(by *watchState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = by
}

// Check implements [LedgerStore].
func (s *ledgerStore) Check() error {
	s.mu.Lock()
	watch := s.watch
	s.mu.Unlock()
	if watch == nil {
		return &watchError{Resource: v1alpha1.DisruptionLedgersResource.Resource, Err: errNoAnswer}
	}
	return watch.check()
}

// forget is for a ledger that is gone.
func (s *ledgerStore) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
}

// Seen implements [rollout.SeenLedger].
func (s *ledgerStore) Seen() (protocol.Ledger, string, bool) {
	s.mu.Lock()
	u, watch := s.last, s.watch
	s.mu.Unlock()
	if u == nil || watch == nil || !watch.informer.HasSynced() {
		return protocol.Ledger{}, "", false
	}
	l, err := ledgerIn(u)
	return l, u.GetResourceVersion(), err == nil
}
