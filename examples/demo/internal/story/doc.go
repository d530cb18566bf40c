// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package story is what the demo plays and how it knows that it happened: which configs are pushed, what each must lead to on
// every node, and what is still missing of that in what was seen.
//
// It is pure: no clock, no files, no network. What was seen ([Seen]) comes from three sides that don't know of each other: the
// report that reached the API server (or, while that is down, the agent's own), the journal that the node's process keeps, and
// an answer of its healthz. An expectation is met only if all three agree.
package story
