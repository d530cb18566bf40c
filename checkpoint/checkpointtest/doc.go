// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkpointtest holds the conformance suite of record stores, and a store in memory that passes it.
//
// [TestStore] checks that a store keeps the promises of checkpoint.Store that code above it relies on: what a name may be,
// what absence is, when a write is none, how generations rise, what an error means. [Memory] keeps them without a disk, and
// fails on demand, so that a test of such code needs neither files nor luck.
//
// # What is not promised
//
// Memory survives no crash and is never damaged; it has no quota. Durability, damage, locks and modes are promises about
// disks: the tests of package checkpoint show them on one.
//
// # Concurrency
//
// A Memory may be used by several goroutines. Its OnCall field is set before the first call.
package checkpointtest
