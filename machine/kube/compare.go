// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/informer"
)

// compareAgain is the pause after a comparison to which the API server gave no answer.
const compareAgain = 5 * time.Second

// watchInformer returns an [InformerError] where the informer of Nodes does not run, drops a field or selects too
// little, and nil when ctx ends. Nothing waits for it: the cluster that the machines join may not be there yet.
func (s *nodeStore) watchInformer(ctx context.Context, option string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	compared := make(chan struct{})
	go func() {
		defer close(compared)
		if wrong := s.compareInformer(ctx); wrong != nil {
			stop(&InformerError{Option: option, Err: wrong})
		}
	}()
	err := informer.WatchRunning(ctx, option, s.informer)
	stop(nil)
	<-compared
	var wrong *InformerError
	if errors.As(context.Cause(ctx), &wrong) {
		return wrong
	}
	return err
}

// compareInformer waits until the informer has synced and returns what is wrong with what it shows, if anything.
func (s *nodeStore) compareInformer(ctx context.Context) error {
	if !waitFor(ctx, s.Synced) {
		return nil
	}
	sample := informer.Sample{
		Resource: "nodes", Store: s.store, Informer: s.informer, Fields: fieldsRead,
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return s.client.CoreV1().Nodes().List(ctx, o)
		},
	}
	for {
		wrong, err := sample.Compare(ctx)
		if wrong != nil || err == nil || ctx.Err() != nil {
			return wrong
		}
		klog.FromContext(ctx).Error(err, "Comparing the informer of Nodes with the API server")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(compareAgain):
		}
	}
}

// fieldsRead are what is read of a Node.
func fieldsRead(obj any) []informer.Field {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return nil
	}
	own := maps.Clone(n.Annotations)
	maps.DeleteFunc(own, func(key, _ string) bool { return !strings.Contains(key, "belay.dev/") })
	return []informer.Field{
		{Name: "metadata.labels", Value: n.Labels}, {Name: "metadata.annotations", Value: own},
		{Name: "spec.providerID", Value: n.Spec.ProviderID}, {Name: "spec.taints", Value: n.Spec.Taints},
		{Name: "status.conditions", Value: ready(n)}, {Name: "status.nodeInfo.bootID", Value: n.Status.NodeInfo.BootID},
	}
}
