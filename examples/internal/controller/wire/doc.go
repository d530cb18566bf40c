// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire makes the parts of the controller of what its flags say: clients, caches, one controller for each disruption domain, and
// the election of its leader.
//
// # Concurrency
//
// What it makes runs in goroutines that Run owns.
package wire
