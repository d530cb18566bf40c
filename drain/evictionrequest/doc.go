// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package evictionrequest is the server side of Kubernetes' EvictionRequest API (KEP-4563, lifecycle.k8s.io/v1alpha1,
// since Kubernetes 1.37): the evictionrequest-controller, which Kubernetes 1.37 does not ship, and the default
// responder imperative-eviction.k8s.io/evictor. Run both where no other program of the cluster does.
//
//	requester                 Controller                        responders
//	EvictionRequest  ──────▶  Eviction: one of a pod  ──────▶  take turns by priority
//	conditions       ◀──────  conditions              ◀──────  heartbeats, completionTime
//
// # Promise
//
//   - A pod has one Eviction that is not final. Its labels name every requester and responder; its owners are the
//     EvictionRequests, so that it is garbage-collected after the last one.
//   - At most one responder is Active. The next one is when it has set its completionTime, or has been silent for 20
//     minutes.
//   - When the last requester withdraws, or its request is deleted, the Active responder is Canceled.
//   - The conditions TargetEvicted and Failed of an Eviction never go back. A new intent after a failure makes a new
//     Eviction, and resets those of the request.
//   - A pod counts as gone, and an eviction as failed for want of a responder, after a consistent read.
//   - A pod of a PodGroup, or one that is not there under its UID, is refused with words.
//   - The Responder evicts only through pods/eviction, with the UID as precondition, after a heartbeat that the API
//     server has taken: not when it has been canceled meanwhile. It tries again after 20 s, doubling up to 15
//     minutes, with the API server's answer in its message.
//
// # No promise
//
// An eviction that the API server has accepted cannot be taken back. A responder that is alive and does nothing is
// believed. Nothing deletes an EvictionRequest: its requester does.
//
// # Concurrency
//
// All methods may be called from several goroutines. Two processes that run at once are right, and write twice: run one
// by leader election.
//
// # Crash behaviour
//
// Kill it anywhere. Nothing is kept but what is in the objects; each write names the resourceVersion that it was
// decided on. What only memory knows starts again: the number of failed evictions, and the 10 s for which a responder
// whose pod is gone may still write its completionTime.
//
// # Rights
//
// The Controller needs: list, watch on evictionrequests and evictions; patch on evictionrequests/status; create, get,
// patch and delete on evictions; patch on evictions/status; get on pods; beside those of the cache of pods. The
// owner references need update on evictionrequests/finalizers where the admission plugin
// OwnerReferencesPermissionEnforcement is on. The Responder needs: list and watch on evictions, patch on
// evictions/status, create on pods/eviction.
package evictionrequest
