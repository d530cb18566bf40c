// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/internal/backoff"
)

// A watcher is the bare limit: it answers each assignment that its watch brings with one write, and does nothing else. The write is the one of an agent, a
// forced apply of a status as large as ours, or a merge patch of what the assignment changes.
type watcher struct {
	client dynamic.ResourceInterface
	node   string
	model  map[string]any // a status of an agent
	plain  *atomic.Bool   // how it writes
	last   string
	wg     sync.WaitGroup
}

// watcher starts one on a node that is there.
func (w *world) watcher(ctx context.Context, node string, model map[string]any, plain *atomic.Bool) (*watcher, error) {
	client, err := dynamic.NewForConfig(w.connection())
	if err != nil {
		return nil, err
	}
	l := &watcher{client: client.Resource(v1alpha1.NodeConfigsResource), node: node, model: model, plain: plain}
	w0, err := l.watch(ctx)
	if err != nil {
		return nil, err
	}
	l.wg.Go(func() { l.run(ctx, w0) })
	return l, nil
}

func (l *watcher) watch(ctx context.Context) (watch.Interface, error) {
	return l.client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + l.node})
}

// run follows its node until ctx ends. A watch that ends is begun again, also after a write that failed, as an agent goes on too: it brings the node first.
func (l *watcher) run(ctx context.Context, w watch.Interface) {
	for {
		err := l.follow(ctx, w)
		w.Stop()
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "  the watcher of %s tries again: %v\n", l.node, err)
		}
		if !backoff.Sleep(ctx, time.Second) {
			return
		}
		if w, err = l.watch(ctx); err != nil {
			w = watch.NewEmptyWatch()
		}
	}
}

// follow answers until the watch ends.
func (l *watcher) follow(ctx context.Context, w watch.Interface) error {
	for e := range w.ResultChan() {
		if u, ok := e.Object.(*unstructured.Unstructured); ok {
			if err := l.answer(ctx, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// answer says that what is assigned is active.
func (l *watcher) answer(ctx context.Context, u *unstructured.Unstructured) error {
	ref, found, err := unstructured.NestedMap(u.Object, "spec", "source", "configMapRef")
	uid, _ := ref["uid"].(string)
	if err != nil || !found || uid == l.last {
		return err
	}
	write := l.apply
	if l.plain.Load() {
		write = l.patch
	}
	if err := write(ctx, ref, u.GetGeneration()); err != nil {
		return err
	}
	l.last = uid
	return nil
}

// apply writes as an agent does.
func (l *watcher) apply(ctx context.Context, ref map[string]any, generation int64) error {
	status := (&unstructured.Unstructured{Object: l.model}).DeepCopy().Object
	for _, field := range []string{"assigned", "active"} {
		for name, value := range ref {
			if err := unstructured.SetNestedField(status, value, field, "configMapRef", name); err != nil {
				return err
			}
		}
	}
	status["observedGeneration"] = generation
	_, err := l.client.ApplyStatus(ctx, l.node, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.NodeConfigKind, "metadata": map[string]any{"name": l.node}, "status": status,
	}}, metav1.ApplyOptions{FieldManager: "limit", Force: true})
	return err
}

// patch writes the same fields and no others.
func (l *watcher) patch(ctx context.Context, ref map[string]any, generation int64) error {
	named := map[string]any{"configMapRef": ref}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"observedGeneration": generation, "assigned": named, "active": named}})
	if err == nil {
		_, err = l.client.Patch(ctx, l.node, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "limit"}, "status")
	}
	return err
}

func (l *watcher) end() error {
	l.wg.Wait()
	return nil
}
