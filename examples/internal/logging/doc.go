// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logging has the flags of the log of a program, as those of Kubernetes have them: the level, text or JSON, and the feature gates that
// some of the others ask for.
//
// # Concurrency
//
// The log belongs to the process: its flags take effect once.
package logging
