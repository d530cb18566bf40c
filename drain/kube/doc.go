// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube connects package drain to an API server. It drains a node in one call, as "kubectl drain" does:
//
//	package example
//
//	import (
//		"context"
//		"github.com/belayproject/belay/drain"
//		"github.com/belayproject/belay/drain/kube"
//		"k8s.io/client-go/rest"
//	)
//
//	func drainOne(ctx context.Context, config *rest.Config) (drain.Status, error) {
//		return kube.DrainNode(ctx, config, "node-1", kube.DrainOptions{Holder: "kernel-upgrade"})
//	}
//
// A program that drains many nodes opens a [Drainer] once, and gives it sets, or one node a pass in a controller:
//
//	package example
//
//	import (
//		"context"
//		"github.com/belayproject/belay/drain"
//		"github.com/belayproject/belay/drain/kube"
//		"k8s.io/client-go/rest"
//	)
//
//	func drainMany(ctx context.Context, config *rest.Config, request drain.Request) (drain.SetStatus, error) {
//		d, err := kube.Open(ctx, config, kube.OpenOptions{})
//		if err != nil {
//			return drain.SetStatus{}, err
//		}
//		defer d.Close()
//		return d.Run(ctx, drain.Set{Groups: [][]string{{"node-1", "node-2"}}, Request: request}, nil)
//	}
//
// A program that has informers already, of client-go or of a controller-runtime manager, gives them, and no second watch begins:
//
//	package example
//
//	import (
//		"context"
//		"github.com/belayproject/belay/drain/kube"
//		"k8s.io/client-go/rest"
//	)
//
//	// openOver is given what mgr.GetCache().GetInformer returns. Call Cache.WaitForSync of its result in the manager.
//	func openOver(ctx context.Context, config *rest.Config, informers kube.Informers) (*kube.Drainer, error) {
//		return kube.Open(ctx, config, kube.OpenOptions{Informers: informers, NoWait: true})
//	}
//
// The parts can be had one by one: a [Cache] over shared informers, a [Client] that never repeats a request, [NewLeaseKeeper] for what stands in
// for a kubelet, [NewEvictionRequester] for pods that name eviction responders, and [NewAnnotationResponder] by which
// pods evacuate themselves where the API server does not serve EvictionRequests.
//
// # Promise
//
//   - What the Drainer looks at comes from watches. Once the Cache has synced, no request is made to read but [Client.ListPods]
//     when a node seems empty and [Client.GetNode] when there seems to be nothing to release, or a cordon met another
//     write; and those of [NewEvictionRequester].
//   - Each call has a deadline. The Client sends a request once, whatever Retry-After the server names.
//   - Every eviction and deletion carries the pod's UID, every patch of a pod too.
//   - A Cache whose watch the server refuses says so, with the server's words: see [Cache.Check].
//   - Informers of an embedder that were not started, have stopped, drop a field or select too little are an [InformerError] that names the
//     option. No drain and no dry run relies on them.
//
// # How a pod evacuates itself
//
// On a server of Kubernetes 1.37 or later with the EvictionRequest API a pod names responders in
// spec.evictionResponders; see [NewEvictionRequester]. On an older one annotations stand in for that:
//
// A pod asks to be told before it is evicted by the annotation [drain.HookAnnotation], with the names of responders in order; the operator
// has a responder of [NewAnnotationResponder] under each of these names. Then, when its node is drained:
//
//  1. The pod gets the annotation [RequestAnnotation]: {"holder":"…","maintenance":"…","responder":"…"}. An answer that an earlier request
//     left behind is removed by the same write.
//  2. The pod, or its controller, sets the annotation drain.belay.dev/evacuation: {"responder":"…","progress":"Working","beat":"1","message":"…"}.
//     The responder is the one of the request, beat any string that is another one at each sign of life. Who is silent for longer than
//     the policy allows is passed over.
//  3. It ends with "progress":"Done", after which what is left of the pod is evicted, or "Declined", after which the next responder is
//     asked.
//
// When the request goes away, or changes, the maintenance is called off, or is another one: the answer belongs to what it answered. The
// pod sees its own annotations through the downward API, and needs the right to patch itself, or leaves that to its controller.
//
// # Rights
//
// The file rbac.yaml beside this package, also returned by [RBAC], has them all, with what each is for.
package kube
