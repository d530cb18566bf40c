// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/backoff"
)

// An observer follows the status of all nodes.
type observer struct {
	mu     sync.Mutex
	uid    string
	left   int
	active map[string]time.Time
	done   chan struct{}
}

// observe begins to. A watch that ends is begun again: it brings all that is there first.
func (w *world) observe(ctx context.Context) *observer {
	o := &observer{done: make(chan struct{})}
	go func() {
		for ctx.Err() == nil {
			watch, err := w.all.Resource(v1alpha1.NodeConfigsResource).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				backoff.Sleep(ctx, 100*time.Millisecond)
				continue
			}
			for e := range watch.ResultChan() {
				if u, ok := e.Object.(*unstructured.Unstructured); ok {
					uid, _, _ := unstructured.NestedString(u.Object, "status", "active", "configMapRef", "uid")
					o.see(u.GetName(), uid)
				}
			}
			watch.Stop()
		}
	}()
	return o
}

// expect waits for that config from now on.
func (o *observer) expect(uid string, nodes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.uid, o.left, o.active, o.done = uid, nodes, map[string]time.Time{}, make(chan struct{})
}

func (o *observer) see(node, uid string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.active[node]; known || uid == "" || uid != o.uid {
		return
	}
	o.active[node] = time.Now()
	if o.left--; o.left == 0 {
		close(o.done)
	}
}

// await returns when each node said that the config is active.
func (o *observer) await(ctx context.Context) (map[string]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-o.done:
		return o.active, nil
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		return nil, fmt.Errorf("waiting for the config to be active on %d more nodes: %w", o.left, ctx.Err())
	}
}
