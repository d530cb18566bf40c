// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API by which a config is assigned to a node and the node reports what became of it.
//
// A [NodeConfig] is cluster-scoped and has the name of its node. Its spec is written by people or controllers, never by the node;
// its status by the node's agent, never by anyone else. No source in the spec means: use the local config, and forget the last
// known good one. A source names exactly one object.
//
// # Promise
//
// Fields are only added, never renamed or given another meaning. A node accepts an object that has fields it doesn't know, with one
// exception: a source of a kind it doesn't know is an invalid source, not an empty one.
//
// The API server enforces what can be seen from the object alone: exactly one kind of source, well-formed names, UID and digest,
// and that a reference can't silently come to mean another object. The node checks all of it again.
//
// # No promise
//
// The types hold no logic and no defaults. Anyone who may write a NodeConfig decides what runs on that node; package kube says which
// rights its parts need.
//
// # The manifest
//
// [CRDs] returns the CustomResourceDefinition for this version of the package, as YAML.
//
// # Concurrency and crash behaviour
//
// Types are plain data: copy them with DeepCopy before sharing. Nothing here is persisted.
//
// +kubebuilder:object:generate=true
// +groupName=belay.dev
package v1alpha1
