// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report says what a drain plans, does and has done, as text for people and as JSON for programs.
//
// Everything is a pure function of what package drain returns and of the time that it is told; [Log] also remembers what it has said,
// so that a pipe gets one line per edge.
//
// A Log has one user.
package report
