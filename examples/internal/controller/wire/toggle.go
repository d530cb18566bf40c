// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/watch"
)

// The keys of the ConfigMap that switches everything off. Without it, and without the first of them, everything is on.
const (
	// DisabledKey is "true" or "false". Whatever else is there counts as "true", as nobody knows what was meant.
	DisabledKey = "disabled"
	// ReasonKey says why, for the status of each Rollout.
	ReasonKey = "reason"
)

// A toggle is the operator's switch for all domains: a ConfigMap that is watched.
type toggle struct {
	name     cache.ObjectName
	informer cache.SharedIndexInformer
}

func newToggle(core kubernetes.Interface, namespace, name string) *toggle {
	configMaps := core.CoreV1().ConfigMaps(namespace)
	informer := watch.NewTypedInformer[*corev1.ConfigMapList](configMaps, &corev1.ConfigMap{}, watch.SelectName(name))
	return &toggle{cache.NewObjectName(namespace, name), informer}
}

// run watches until ctx ends. changed is called after each change.
func (t *toggle) run(ctx context.Context, changed func()) error {
	_, err := t.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return fmt.Errorf("watching ConfigMap %q: %w", t.name, err)
	}
	t.informer.RunWithContext(ctx)
	return nil
}

// off says why nothing may be begun: controller.Options.Off.
func (t *toggle) off() string {
	obj, there, err := t.informer.GetStore().GetByKey(t.name.String())
	if err != nil || !there {
		return ""
	}
	c, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return ""
	}
	return offBy(t.name.String(), c.Data)
}

// offBy is what the content of the ConfigMap of that name means.
func offBy(name string, data map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if key != DisabledKey && key != ReasonKey {
			return fmt.Sprintf("data of ConfigMap %q has the key %q, want %q and %q alone", name, key, DisabledKey, ReasonKey)
		}
	}
	text, said := data[DisabledKey]
	switch disabled, err := strconv.ParseBool(text); {
	case !said || text == "false":
		return ""
	case err != nil || text != strconv.FormatBool(disabled):
		return fmt.Sprintf("data.%s of ConfigMap %q is %q, want \"true\" or \"false\"", DisabledKey, name, text)
	}
	return cmp.Or(data[ReasonKey], fmt.Sprintf("ConfigMap %q has switched everything off", name))
}
