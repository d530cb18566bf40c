// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllertest has the parts of a machine controller in memory: a store with the rules of the API server's versions, and a workload cluster
// whose kubelets join.
//
// # Promise
//
// A [Store] refuses a write with an older version, keeps status and the rest apart, and lets a deleted machine go with its last finalizer. A [Cluster]
// has a Node for each running instance of its provider, removes Nodes by UID alone, and its kubelets come back as long as their instance runs.
// [Hook] sees every call before and after its effect: a test that panics there kills the controller at that line.
//
// # No promise
//
// There is no validation.
//
// # Concurrency and crashes
//
// All methods may be called concurrently. Everything is lost with the process.
package controllertest
