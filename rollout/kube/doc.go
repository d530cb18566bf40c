// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube keeps what a rollout remembers in the API server.
//
// # Promise
//
// A [ConfigMapLedger] is read from the API server's storage, never from a cache, and written by compare-and-swap on its resourceVersion. What
// cannot be read exactly as it was written is an error that names the object and the field. Labels, annotations and other keys of the
// ConfigMap are left as they are.
//
// # No promise
//
// Whoever may write the ConfigMap may break every cap: give that right to the controller alone. A finalizer keeps it from being deleted by
// accident; somebody who removes that as well costs capacity: see [github.com/belayproject/belay/rollout/protocol.Reborn].
//
// # Rights
//
// get, create and update on configmaps, best on the one name alone; create cannot be limited to a name.
//
// # Concurrency and crash behaviour
//
// All methods may be called at the same time. A call to the API server ends after 10 seconds. A Store after the Load of its version is one call.
package kube
