// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/belayproject/belay/machine"
)

// Finalizer keeps a Machine until it is let go.
const Finalizer = "belay.dev/machine"

func key(o *metav1.ObjectMeta) machine.Key { return machine.Key{Namespace: o.Namespace, Name: o.Name} }

// ownerOf is the controlling object, of whatever kind.
func ownerOf(o *metav1.ObjectMeta) machine.Owner {
	if c := metav1.GetControllerOfNoCopy(o); c != nil {
		return machine.Owner{UID: string(c.UID), Name: c.Name}
	}
	return machine.Owner{}
}

// setOwner makes the controlling object the owner, which has that kind if it is another one than before. Other owners stay.
func setOwner(o *metav1.ObjectMeta, owner machine.Owner, kind string) {
	if ownerOf(o) == owner {
		return
	}
	yes := true
	var all []metav1.OwnerReference
	for _, r := range o.OwnerReferences {
		if r.Controller == nil || !*r.Controller {
			all = append(all, r)
		}
	}
	if owner != (machine.Owner{}) {
		all = append(all, metav1.OwnerReference{
			APIVersion: GroupVersion.String(), Kind: kind, Name: owner.Name, UID: types.UID(owner.UID), Controller: &yes, BlockOwnerDeletion: &yes,
		})
	}
	o.OwnerReferences = all
}

func setFinalizer(o *metav1.ObjectMeta, want bool) {
	switch have := slices.Contains(o.Finalizers, Finalizer); {
	case want && !have:
		o.Finalizers = append(slices.Clone(o.Finalizers), Finalizer)
	case !want && have:
		o.Finalizers = slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == Finalizer })
	}
}

// checkNames finds keys of labels and annotations that nothing can have: for the server that would cost too much.
func checkNames(field string, labels, annotations map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if why := validation.IsQualifiedName(k); len(why) > 0 {
			return fmt.Errorf("%s.labels: key %.320q: %s", field, k, strings.Join(why, "; "))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		if why := validation.IsQualifiedName(strings.ToLower(k)); len(why) > 0 {
			return fmt.Errorf("%s.annotations: key %.320q: %s", field, k, strings.Join(why, "; "))
		}
	}
	return nil
}

// textsOf copies a map of one kind of text to one of another. Nil stays nil.
func textsOf[W, V ~string](in map[string]V) map[string]W {
	if in == nil {
		return nil
	}
	out := make(map[string]W, len(in))
	for k, v := range in {
		out[k] = W(v)
	}
	return out
}

func duration(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

func durationRef(d time.Duration) *metav1.Duration {
	if d == 0 {
		return nil
	}
	return &metav1.Duration{Duration: d}
}

// timeOf is a time in UTC, so that what was read is the same wherever it is read.
func timeOf(t *metav1.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

func timeRef(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

// second is the time as it is stored.
func second(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(t.UTC().Truncate(time.Second))
}
