// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

// What the tests of this package tell errors apart by.
var (
	ErrNoLease = errNoLease
	ErrPodGone = errPodGone
)

// AnswerError is the error of an answer that says nothing.
type AnswerError = answerError

// KeepPlacement is the transform of a factory with CacheOptions.Placement.
var KeepPlacement = keepPlacement
