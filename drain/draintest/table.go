// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/belayproject/belay/drain"
)

// An object is what tables hold: never changed once it is in one.
type object[T any] interface {
	metav1.Object
	comparable
	DeepCopy() T
}

// A table holds the objects of a kind, as the server has them and as the cache has seen them.
type table[K comparable, T object[T]] struct {
	live, seen map[K]T
}

func (t *table[K, T]) get(k K) T { return t.live[k] }

// sorted returns the objects of a map that pass, by namespace and name.
func sorted[K comparable, T object[T]](m map[K]T, pass func(T) bool) []T {
	var out []T
	for o := range maps.Values(m) {
		if pass == nil || pass(o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// put stores an object that the caller made and hands over, gives it the next resourceVersion, and lets the cache see it.
func put[K comparable, T object[T]](c *Cluster, t *table[K, T], k K, o T, changes ...drain.Change) T {
	c.version++
	o.SetResourceVersion(strconv.FormatInt(c.version, 10))
	if t.live == nil {
		t.live = map[K]T{}
	}
	t.live[k] = o
	c.publish(func() { t.show(k, o) }, changes)
	return o
}

// drop removes an object for good.
func drop[K comparable, T object[T]](c *Cluster, t *table[K, T], k K, changes ...drain.Change) {
	c.version++
	delete(t.live, k)
	c.publish(func() { delete(t.seen, k) }, changes)
}

func (t *table[K, T]) show(k K, o T) {
	if t.seen == nil {
		t.seen = map[K]T{}
	}
	t.seen[k] = o
}

// relist shows everything as it is, and returns the objects that had been seen differently.
func (t *table[K, T]) relist() []T {
	var changed []T
	for k, o := range t.live {
		if old, ok := t.seen[k]; !ok || old != o {
			changed = append(changed, o)
		}
	}
	for k, o := range t.seen {
		if now, ok := t.live[k]; !ok || now != o {
			changed = append(changed, o)
		}
	}
	t.seen = maps.Clone(t.live)
	return changed
}

// publish lets the cache see a change, when its time comes and if its watch still stands then.
func (c *Cluster) publish(show func(), changes []drain.Change) {
	if c.watchDown {
		return
	}
	epoch := c.epoch
	see := func() {
		if c.epoch == epoch {
			show()
			c.news = append(c.news, changes...)
		}
	}
	if c.o.CacheLag == 0 {
		see()
		return
	}
	c.after(c.o.CacheLag, see)
}
