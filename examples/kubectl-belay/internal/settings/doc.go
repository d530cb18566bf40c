// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package settings holds what the command line of kubectl-belay says, and checks it.
//
// Each value is made for one run and used by one goroutine.
package settings
