// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package settings holds what the command line of the agent says: the flags, their defaults, and what makes sense
// together.
//
// [Run.Validate] finds everything that is wrong at once, before anything is opened. Each error names the flag, the
// value it has and what would be right.
//
// # Concurrency
//
// Flags are parsed and validated before anything else starts; afterwards the values are only read.
package settings
