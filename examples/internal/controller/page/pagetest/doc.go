// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pagetest has a fleet of any size for tests of the fleet page, and for a look at it without a cluster.
//
// # Concurrency
//
// A Fleet may be used by several goroutines.
package pagetest
