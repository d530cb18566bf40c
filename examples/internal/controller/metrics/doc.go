// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what the controllers do, in the registry of a Kubernetes component.
//
// Labels are bounded: states, phases and results are the constants of the packages; revisions are bounded by package
// rollout/controller; rollouts and domains are as many as an operator makes. No node, pod or message is a label.
//
// # Concurrency
//
// All functions may be called at the same time.
package metrics
