// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkpointtest holds the conformance suite of record stores, a store in memory that passes it, and a disk in memory that
// crashes and fails.
//
// [TestStore] checks that a store keeps the promises of checkpoint.Store that code above it relies on: what a name may be,
// what absence is, when a write is none, how generations rise, what an error means. [Memory] keeps them without a disk, and
// fails on demand, so that a test of such code needs neither files nor luck.
//
// [Crash] is for those who keep files themselves. It runs their store on a [Disk], finds every state that a power cut may
// leave, and has their check look at each, also at crashes during recovery. [Fault] has any call of the Disk fail. The
// Store of package checkpoint is tested so; it reaches a Disk through an interface inside that package, so that
// nobody's program comes to depend on it.
//
// # What is not promised
//
// Memory survives no crash and is never damaged; it has no quota. A Disk loses no less than a real file system with write
// barriers, and knows no links, owners or times: that a store passes on it does not replace a test on the real one.
//
// # Concurrency
//
// A Memory and a Disk may be used by several goroutines. Memory's OnCall field is set before the first call. A story of several
// goroutines can be replayed if something orders their calls, as the tests of package checkpoint do with testing/synctest.
package checkpointtest
