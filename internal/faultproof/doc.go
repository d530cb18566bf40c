// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faultproof proves package checkpoint on real file systems, ext4, xfs and btrfs, with real faults. It holds nothing but
// tests:
//
//   - Power cuts: the file system is shut down at random instants under concurrent writers, also while a store recovers (D2, D4);
//     and a disk that records every write and flush is brought back to each point of its history, with writes that no flush had
//     confirmed lost, reordered and torn (D3).
//   - A disk that fails one write or one flush and then heals (D6), is full (D7), read-only or slow (D8), and a directory that is
//     moved, replaced or covered while a store is open (D10).
//   - Processes that are killed (P1), and two that open one store at once (P3).
//
// The same power cuts hit the libraries that node agents use today, and a writer that repeats a failed fsync. They lose records: that
// shows that the harness finds what it looks for.
//
// A part of it runs with every go test, and all of it with BELAY_FAULTS=1, or BELAY_FAULTS=long for the long figures. Each random
// case prints its seed; BELAY_FAULTS_SEED runs that one case alone.
//
// The tests run in a mount namespace of their own, on a file system in memory that belongs to it. Whatever they mount, and each
// loop device below it, goes with the last process of the namespace, however that ends: nothing is left to be removed.
package faultproof
