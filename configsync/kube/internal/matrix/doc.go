// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package matrix lists what may happen to the source of a node's config, and what has to follow from it: as seen by a source and
// a fetcher, and as done by a live node.
//
// The rows are data: a test gives them a [World], which holds a real API server. They cover what Kubernetes itself once tested of
// its dynamic kubelet configuration: no source, an empty one, each field missing, paths as names, good and bad payloads, objects
// that are absent, forbidden, created again or edited, and the way back from
// trouble, to the local config and to one that has proven itself.
//
// # Promise
//
// Each call of [Rows] returns fresh rows that share no state.
//
// # No promise
//
// Timing isn't part of a row, nor are crashes.
package matrix
