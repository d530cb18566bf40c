// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics shows the configs of a node at /metrics, in the shape in which kubelets did: belay_config_assigned,
// belay_config_active and belay_config_last_known_good have the value 1 and say by labels which config that is, belay_config_error is 1 while
// something is in the way. All is taken, at each scrape, from the status and from what the history has on record: a restart resets nothing.
//
// # Concurrency
//
// A handler may be called by several goroutines.
package metrics
