// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view makes of the objects of a cluster what package rollout decides on, so that what is said here of a rollout is what its
// controller would decide.
//
// What the controller knows and no object says is taken from the status of the Rollout: that a drain is blocked, and how nodes in flight
// fare. What it was told on its command line, or by its switch, is in no object: it is known here as far as [Seen] says it.
//
// # Concurrency
//
// Everything is plain data, and nothing is kept.
package view
