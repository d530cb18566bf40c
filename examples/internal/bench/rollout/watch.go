// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// unread is how many sightings may wait for whoever measures.
const unread = 20_000

// A sighting is one version of an object, and when the watch has brought it.
type sighting struct {
	at       time.Time
	resource string
	object   *unstructured.Unstructured
	err      error
}

// look follows all versions of objects of these resources until ctx ends, by watches of their own. What is there already comes first.
func (f *fleet) look(ctx context.Context, resources ...schema.GroupVersionResource) (<-chan sighting, error) {
	config := f.Env.Config()
	config.UserAgent = "observer"
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	seen := make(chan sighting, unread)
	for _, r := range resources {
		w, err := client.Resource(r).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", r.Resource, err)
		}
		go func() {
			defer w.Stop()
			for ctx.Err() == nil {
				e := <-w.ResultChan()
				s := sighting{at: time.Now(), resource: r.Resource}
				var ok bool
				if s.object, ok = e.Object.(*unstructured.Unstructured); !ok {
					s.err = fmt.Errorf("the watch of %s has ended: %+v", r.Resource, e.Object)
				}
				select {
				case seen <- s:
				case <-ctx.Done():
				}
				if !ok {
					return
				}
			}
		}()
	}
	return seen, nil
}

// until takes sightings until one is the last that is wanted, which it returns.
func until(ctx context.Context, seen <-chan sighting, within time.Duration, last func(sighting) bool) (sighting, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		select {
		case s := <-seen:
			if s.err != nil {
				return s, s.err
			}
			if last(s) {
				return s, nil
			}
		case <-ctx.Done():
			return sighting{}, fmt.Errorf("waiting %v: %w", within, context.Cause(ctx))
		}
	}
}

// number and text read fields; what is absent is zero.
func (s sighting) number(path ...string) int64 {
	n, _, _ := unstructured.NestedInt64(s.object.Object, path...)
	return n
}

func (s sighting) text(path ...string) string {
	text, _, _ := unstructured.NestedString(s.object.Object, path...)
	return text
}

func (s sighting) is(path ...string) bool {
	is, _, _ := unstructured.NestedBool(s.object.Object, path...)
	return is
}

func (s sighting) into(object any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(s.object.Object, object)
}

// errOver means that a rollout was over before there was enough to measure.
var errOver = errors.New("the rollout is over too early: nothing is measured")
