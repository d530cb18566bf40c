// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/evictionapi"
)

const callTimeout = 30 * time.Second

func podsResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("pods")
}

// observe reads what is known of a target from the watches, and the pod from the API server where the cache cannot tell
// enough: it is not there, or something that cannot be reverted depends on it.
func (c *Controller) observe(ctx context.Context, target drain.PodRef) (observation, error) {
	o := observation{target: target, now: c.now()}
	var err error
	if o.requests, err = listOf(c.requests, target, evictionapi.DecodeRequest); err != nil {
		return o, err
	}
	if o.evictions, err = listOf(c.evictions, target, evictionapi.DecodeEviction); err != nil {
		return o, err
	}
	if err := c.addCreated(ctx, &o); err != nil {
		return o, err
	}
	if len(o.requests) == 0 && len(o.evictions) == 0 {
		return o, nil
	}
	if err := c.pods.Check(); err != nil {
		return o, err
	}
	pod := c.pods.Pod(target.Namespace, target.Name)
	node := ""
	if pod != nil && pod.UID == target.UID {
		o.pod, node = stateOf(pod.DeletionTimestamp, pod.Status.Phase), pod.Spec.NodeName
	}
	if o.pod != podRunning || needsPod(o.evictions) {
		if err := c.readPod(ctx, &o); err != nil {
			return o, err
		}
	}
	o.endedFor = c.noteSeen(o, node)
	return o, nil
}

func listOf[T any](
	informer cache.SharedIndexInformer, target drain.PodRef, decode func(*unstructured.Unstructured) (*T, error),
) ([]*T, error) {
	objects, err := informer.GetIndexer().ByIndex(targetIndex, indexKey(target))
	if err != nil {
		return nil, err
	}
	var all []*T
	for _, object := range objects {
		if u, ok := object.(*unstructured.Unstructured); ok {
			decoded, err := decode(u)
			if err != nil {
				return nil, err
			}
			all = append(all, decoded)
		}
	}
	return all, nil
}

// addCreated adds the Eviction that this process has created where the watch has not shown it yet. Without it, an old
// result would be taken for the new one's.
func (c *Controller) addCreated(ctx context.Context, o *observation) error {
	c.mu.Lock()
	name, found := c.created[o.target]
	c.mu.Unlock()
	if !found {
		return nil
	}
	shown := slices.ContainsFunc(o.evictions, func(e *evictionapi.Eviction) bool { return e.Name == name.Name })
	if !shown {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		u, err := c.client.Resource(evictionapi.EvictionsResource()).Namespace(name.Namespace).
			Get(ctx, name.Name, metav1.GetOptions{})
		if err == nil {
			e, err := evictionapi.DecodeEviction(u)
			if err != nil {
				return err
			}
			if target, ok := refOf(e.Namespace, e.Spec.Target); ok && target == o.target {
				o.evictions = append(o.evictions, e)
			}
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.created, o.target)
	return nil
}

// needsPod reports whether the next decision may need more of a pod than the cache has: its responders, or the
// certainty that it still runs.
func needsPod(evictions []*evictionapi.Eviction) bool {
	current := chooseCurrent(evictions)
	if current == nil || len(current.Status.TargetResponders) == 0 || isFinal(current.Status.Conditions) {
		return true
	}
	t := newTurn(current.Status)
	last := t.indexActive() == len(t.targets)-1 || t.isOver()
	return last
}

// readPod reads the pod from the API server.
func (c *Controller) readPod(ctx context.Context, o *observation) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	u, err := c.client.Resource(podsResource()).Namespace(o.target.Namespace).
		Get(ctx, o.target.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && u.GetUID() != o.target.UID {
		o.pod = podGone
		return nil
	}
	if err != nil {
		return err
	}
	phase, _, err := unstructured.NestedString(u.Object, "status", "phase")
	if err != nil {
		return err
	}
	o.pod = stateOf(u.GetDeletionTimestamp(), corev1.PodPhase(phase))
	o.grouped = evictionapi.HasSchedulingGroup(u)
	o.responders, err = evictionapi.PodResponders(u)
	return err
}

func stateOf(deletion *metav1.Time, phase corev1.PodPhase) podState {
	switch {
	case phase == corev1.PodSucceeded || phase == corev1.PodFailed:
		return podTerminal
	case deletion != nil:
		return podTerminating
	default:
		return podRunning
	}
}

// noteSeen remembers where a target was and since when it has ended, and returns for how long.
func (c *Controller) noteSeen(o observation, node string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.seen[o.target]
	if s == nil {
		s = &sighting{}
		c.seen[o.target] = s
	}
	if s.pod = o.pod; node != "" {
		s.node = node
	}
	if o.pod != podGone && o.pod != podTerminal {
		s.ended = time.Time{}
		return 0
	}
	if s.ended.IsZero() {
		s.ended = o.now
	}
	return o.now.Sub(s.ended)
}
