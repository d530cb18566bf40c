// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/internal/option"
	"github.com/belayproject/belay/internal/watch"
)

// watch calls changed once at the start and then whenever the fingerprint of the target is another one; its absence is a fingerprint
// too. A reflector does the work: it lists and watches this one object, again and again, backing off up to a minute, and so
// comes through expired versions, restarts of the API server, and kinds that aren't served yet. It returns nil when ctx ends.
func (c caller) watch(ctx context.Context, t target, fingerprint func(*unstructured.Unstructured) string, changed func()) error {
	return c.watchSeen(ctx, t, nil, fingerprint, changed)
}

// watchSeen is watch, and tells s what comes before it calls changed.
func (c caller) watchSeen(ctx context.Context, t target, s *seen, fingerprint func(*unstructured.Unstructured) string, changed func()) error {
	call, remedy := "configsync/kube: watch of a "+t.kind, "what looks again"
	if err := option.CheckRequired(call, "changed", changed, remedy); err != nil {
		return err
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "kind", t.kind, "object", klog.KRef(t.namespace, t.name))
	ctx = klog.NewContext(ctx, logger)
	store := &trigger{name: t.name, seen: s, fingerprint: fingerprint, changed: changed}
	reflector := cache.NewReflectorWithOptions(c.listWatch(t), nil, store, cache.ReflectorOptions{Name: "configsync/kube", TypeDescription: t.String()})
	watch.RunReflector(ctx, reflector, c.retryMax)
	if store.known {
		s.follow(-1)
	}
	return nil
}

// listWatch lists and watches the target alone, by a field selector, so that a right on that name is enough.
func (c caller) listWatch(t target) cache.ListerWatcher {
	only := watch.SelectName(t.name)
	return watch.Resume(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := c.within(ctx)
			defer cancel()
			only(&o)
			return c.at(t).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			only(&o)
			return c.at(t).Watch(ctx, o)
		},
	}, c.client, c.retryMax)
}

// trigger is the store of the reflector. It keeps nothing but the last fingerprint. The reflector calls it from one goroutine.
type trigger struct {
	name        string
	seen        *seen
	fingerprint func(*unstructured.Unstructured) string
	changed     func()

	known bool
	last  string
}

func (t *trigger) see(fingerprint string) {
	if t.known && t.last == fingerprint {
		return
	}
	if !t.known {
		t.seen.follow(1)
	}
	t.known, t.last = true, fingerprint
	t.changed()
}

// Add takes note of an object.
func (t *trigger) Add(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("watching %q: got a %T", t.name, obj)
	}
	if u.GetName() == t.name {
		t.seen.watched(u)
		t.see("present " + t.fingerprint(u))
	}
	return nil
}

// Update takes note of an object.
func (t *trigger) Update(obj any) error { return t.Add(obj) }

// Delete takes note of the absence of an object.
func (t *trigger) Delete(obj any) error {
	if u, ok := obj.(*unstructured.Unstructured); !ok || u.GetName() == t.name {
		t.gone()
	}
	return nil
}

// Replace takes note of what a list holds.
func (t *trigger) Replace(list []any, _ string) error {
	for _, obj := range list {
		if u, ok := obj.(*unstructured.Unstructured); ok && u.GetName() == t.name {
			return t.Add(u)
		}
	}
	t.gone()
	return nil
}

func (t *trigger) gone() {
	t.seen.forget()
	t.see("absent")
}

// UpdateResourceVersion takes note of how far the watch has come, with each event and each bookmark.
func (t *trigger) UpdateResourceVersion(version string) { t.seen.word(version) }

// Resync does nothing: no resync is asked for.
func (t *trigger) Resync() error { return nil }
