// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view makes of the objects of a cluster what package rollout decides on, so that what is said here of a rollout is what its
// controller would decide.
//
// What the controller knows and no object says is taken from the status of the Rollout: that a drain is blocked, and how nodes in flight
// fare. Gates that a controller has beyond the health of nodes are not known here.
//
// # Concurrency
//
// Everything is plain data, and nothing is kept.
package view
