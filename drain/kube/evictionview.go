// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/evictionapi"
)

const (
	// viewAge is how long the EvictionRequests and Evictions of a namespace are believed. It is shorter than the time
	// between two calls of Respond about a pod, and lets those about other pods share one look.
	viewAge = 5 * time.Second
	// nodeAge is how long the pods of a node that is not drained any more are remembered.
	nodeAge = time.Hour
	// servedAge is how long an API that was not served is not asked for.
	servedAge = time.Hour
)

// A servedAPI says whether the API server serves EvictionRequests.
type servedAPI struct {
	yes bool
	at  time.Time // when that was asked; zero for never
}

// isServed asks the API server once. One that does not serve the API is asked again after an hour: it may be upgraded.
func (r *evictionRequester) isServed(ctx context.Context) (bool, error) {
	r.mu.Lock()
	api := r.api
	r.mu.Unlock()
	if api.yes || !api.at.IsZero() && r.now().Before(api.at.Add(servedAge)) {
		return api.yes, nil
	}
	yes, err := evictionapi.IsServed(ctx, r.discovery)
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err): // nor may it use the API then
		yes = false
	case err != nil && !api.at.IsZero():
		return api.yes, nil // as it was an hour ago
	case err != nil:
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.api = servedAPI{yes: yes, at: r.now()}
	return yes, nil
}

// nodePods are the pods of a node, by UID, with whether each has responders.
type nodePods struct {
	known map[types.UID]bool
	at    time.Time // of the last question
}

// FindPods returns the pods whose spec.evictionResponders names a responder. The library's Pod type has no such field,
// so the pods of the node are listed: once, and again when a pod has come that no list has shown. The field never
// changes.
func (r *evictionRequester) FindPods(
	ctx context.Context, node string, pods []drain.PodRef,
) (map[types.UID]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	served, err := r.isServed(ctx)
	if err != nil || !served {
		return nil, err
	}
	known, complete := r.knownPods(node, pods)
	if !complete {
		if known, err = r.listPods(ctx, node, pods); err != nil {
			return nil, err
		}
	}
	found := map[types.UID]bool{}
	for _, pod := range pods {
		if known[pod.UID] {
			found[pod.UID] = true
		}
	}
	return found, nil
}

// knownPods returns what earlier lists have shown of a node, and whether that covers the pods.
func (r *evictionRequester) knownPods(node string, pods []drain.PodRef) (known map[types.UID]bool, complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nodes[node]
	if n == nil {
		return nil, false
	}
	n.at = r.now()
	for _, pod := range pods {
		if _, ok := n.known[pod.UID]; !ok {
			return nil, false
		}
	}
	return n.known, true
}

// listPods reads the pods of a node. A pod that is asked for and not there any more has no responder.
func (r *evictionRequester) listPods(
	ctx context.Context, node string, asked []drain.PodRef,
) (map[types.UID]bool, error) {
	resource := corev1.SchemeGroupVersion.WithResource("pods")
	onNode := fields.OneTermEqualSelector("spec.nodeName", node).String()
	list, err := r.objects.Resource(resource).List(ctx, metav1.ListOptions{FieldSelector: onNode})
	if err != nil {
		return nil, fmt.Errorf("looking for spec.evictionResponders of the pods of node %q: %w", node, err)
	}
	known := make(map[types.UID]bool, len(list.Items))
	for _, pod := range asked {
		known[pod.UID] = false
	}
	for i := range list.Items {
		responders, err := evictionapi.PodResponders(&list.Items[i])
		if err != nil {
			return nil, err
		}
		known[list.Items[i].GetUID()] = len(responders) > 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	maps.DeleteFunc(r.nodes, func(_ string, n *nodePods) bool { return now.After(n.at.Add(nodeAge)) })
	r.nodes[node] = &nodePods{known: known, at: now}
	return known, nil
}

// An evictionView is what was seen last of a namespace: the EvictionRequests of this package, and their Evictions.
type evictionView struct {
	mu        sync.Mutex
	at        time.Time
	requests  map[string]*evictionapi.EvictionRequest // by name
	evictions map[types.UID]*evictionapi.Eviction     // by the pod's UID
}

// viewOf returns the view of a namespace, and reads it again first where it is old. Calls meanwhile get the old one.
func (r *evictionRequester) viewOf(ctx context.Context, namespace string) (*evictionView, error) {
	r.mu.Lock()
	view := r.views[namespace]
	if view == nil {
		view = &evictionView{}
		r.views[namespace] = view
	}
	dropOld(r)
	r.mu.Unlock()
	last, old := view.beginRead(r.now())
	if !old {
		return view, nil
	}
	requests, evictions, err := r.readNamespace(ctx, namespace)
	if err != nil {
		view.endRead(last)
		return nil, fmt.Errorf("looking at the evictions of namespace %q: %w", namespace, err)
	}
	view.replaceAll(requests, evictions)
	return view, nil
}

// dropOld forgets what has not been asked about for long. The caller holds r.mu.
func dropOld(r *evictionRequester) {
	before := r.now().Add(-nodeAge)
	maps.DeleteFunc(r.views, func(_ string, v *evictionView) bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return !v.at.IsZero() && v.at.Before(before)
	})
	maps.DeleteFunc(r.unseen, func(_ requestKey, at time.Time) bool { return at.Before(before) })
}

// readNamespace lists what the requester has asked for in a namespace and how that goes.
func (r *evictionRequester) readNamespace(ctx context.Context, namespace string) (
	map[string]*evictionapi.EvictionRequest, map[types.UID]*evictionapi.Eviction, error,
) {
	// The Evictions come second: one that answers a listed EvictionRequest is not older than it.
	requests, err := r.objects.Resource(evictionapi.RequestsResource()).Namespace(namespace).
		List(ctx, metav1.ListOptions{LabelSelector: managedByLabel + "=" + fieldManager})
	if err != nil {
		return nil, nil, err
	}
	evictions, err := r.objects.Resource(evictionapi.EvictionsResource()).Namespace(namespace).
		List(ctx, metav1.ListOptions{LabelSelector: requesterName})
	if err != nil {
		return nil, nil, err
	}
	byName, err := indexRequests(requests.Items)
	if err != nil {
		return nil, nil, err
	}
	byPod, err := indexEvictions(evictions.Items)
	return byName, byPod, err
}

func indexRequests(items []unstructured.Unstructured) (map[string]*evictionapi.EvictionRequest, error) {
	out := make(map[string]*evictionapi.EvictionRequest, len(items))
	for i := range items {
		request, err := evictionapi.DecodeRequest(&items[i])
		if err != nil {
			return nil, err
		}
		out[request.Name] = request
	}
	return out, nil
}

// indexEvictions takes one Eviction for each pod. One that was canceled stays beside the next, which is the one that
// counts.
func indexEvictions(items []unstructured.Unstructured) (map[types.UID]*evictionapi.Eviction, error) {
	out := make(map[types.UID]*evictionapi.Eviction, len(items))
	for i := range items {
		eviction, err := evictionapi.DecodeEviction(&items[i])
		if err != nil {
			return nil, err
		}
		if pod := eviction.Spec.Target.Pod; pod != nil && isNewer(eviction, out[pod.UID]) {
			out[pod.UID] = eviction
		}
	}
	return out, nil
}

// isNewer reports whether an Eviction counts more than another one of its pod, which may be nil.
func isNewer(a, b *evictionapi.Eviction) bool {
	if b == nil {
		return true
	}
	if isOver(a) != isOver(b) {
		return isOver(b)
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}

// beginRead reports whether the view is old. Then the caller reads it again, and no other call does meanwhile.
func (v *evictionView) beginRead(now time.Time) (last time.Time, old bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.at.IsZero() && now.Before(v.at.Add(viewAge)) {
		return v.at, false
	}
	last, v.at = v.at, now
	return last, true
}

// endRead takes back a beginRead that has failed.
func (v *evictionView) endRead(last time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at = last
}

func (v *evictionView) replaceAll(
	requests map[string]*evictionapi.EvictionRequest, evictions map[types.UID]*evictionapi.Eviction,
) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests, v.evictions = requests, evictions
}

func (v *evictionView) findRequest(name string) *evictionapi.EvictionRequest {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.requests[name]
}

func (v *evictionView) findEviction(pod types.UID) *evictionapi.Eviction {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.evictions[pod]
}

// keepRequest notes an EvictionRequest as the server has just returned it.
func (v *evictionView) keepRequest(request *evictionapi.EvictionRequest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.requests == nil {
		v.requests = map[string]*evictionapi.EvictionRequest{}
	}
	v.requests[request.Name] = request
}

func (v *evictionView) dropRequest(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.requests, name)
}
