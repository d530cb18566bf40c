// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API in which maintenance of nodes is asked for: a [NodeMaintenance] names nodes and what is
// wanted of them, and its status says how far that has come. It is cluster-scoped.
//
// Package drain/maintenance carries it out. The fields nodeName and reason are those of medik8s' NodeMaintenance;
// modes and selector follow KEP-4212.
//
// # Promise
//
// The API server itself enforces, on every write: exactly one of nodeName and nodeSelector, neither of which changes;
// a mode that changes from Cordon to Drain alone; a deadline for each hold; windows that end after their beginning.
// The message of a refusal names the field and says what would be right. Fields are only added, never renamed or
// given another meaning.
//
// # No promise
//
// The server does not check spec.policy, nor the keys of labels: the controller does, and says so in the condition
// Stalled, with the reason Invalid. A Node of that name need not exist.
//
// # Concurrency and crash behaviour
//
// Types are plain data: copy them with DeepCopy before sharing. Nothing here is persisted.
//
// +kubebuilder:object:generate=true
// +groupName=belay.dev
package v1alpha1
