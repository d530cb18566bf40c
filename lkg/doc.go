// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lkg decides which config a node uses: the assigned one on trial, the last known good one, or the
// local baseline; and remembers, across crashes, which configs were good and which were bad.
//
//	package example
//
//	import (
//		"context"
//		"github.com/belayproject/belay/lkg"
//	)
//
//	func choose(ctx context.Context, store lkg.Store, check func(lkg.Ref) lkg.Check) (lkg.Verdict, error) {
//		tracker, err := lkg.NewTracker(ctx, store, lkg.Options{Version: "v1.0.0"})
//		if err != nil {
//			return lkg.Verdict{}, err
//		}
//		if err := tracker.Start(ctx, lkg.Exit{}); err != nil {
//			return lkg.Verdict{}, err
//		}
//		return tracker.Decide(ctx, nil, check)
//	}
//
// Two pure functions hold every rule. [Decide] answers, at a start, "which config do I use, and why?".
// [Promote] answers, while a config runs, "has it earned to be the last known good one?". Neither reads a
// clock, a file or the network, so the same functions serve production, dry runs and a status command.
// [Tracker] keeps what they need in records and holds the order of the writes.
//
// # A start
//
//  1. [Tracker.Start] records the start, before anything else can fail.
//  2. [Tracker.Decide] picks the config. It checks the local baseline first, always.
//  3. The caller reports the condition of the verdict, then uses the config.
//  4. [Tracker.Healthy] is called every few seconds. It promotes the config, or rejects it.
//
// # What is promised
//
//   - A verdict names a config whose check was OK in this very decision, or it refuses to start, and then only
//     because the local baseline is not valid.
//   - A config on trial is used only by a start that is on record. Where the store can not write, the last known
//     good config is used.
//   - A config becomes the last known good one only after more than its trial of healthy time, measured by a
//     monotonic clock, the last part of which was one healthy run. Planned restarts and reboots are bridged; a start that
//     counts against the config takes away what came before it. No clock step and no restart shortens it.
//   - A rejected config is on record before its replacement is named, and it is not used again until a person
//     calls [Tracker.Forget].
//   - Going back needs no network, and never changes the `current` record.
//   - A fallback that crashes is left for the one before it, then for the local baseline, and never the other way
//     round, until there is a new last known good config.
//
// # What is not promised
//
//   - A config that takes the whole machine down is not counted: a start in a new boot is a reboot, and reboots
//     have too many causes. Such a config is never promoted, but it is tried again.
//   - A config that breaks after its promotion is not watched.
//   - A belief record (which configs are bad, which starts were seen) that can not be read is set aside with a
//     [Notice] and starts empty: a bad config may then be tried again, within its threshold.
//
// # Crash behaviour
//
// Each method of [Tracker] says in which order it writes. Killed between two writes, or with a store that
// refuses the rest, the next start decides as if the method was never called, or as if it was done.
//
// # Concurrency
//
// The pure functions may be called from anywhere. A [Tracker] may be used by several goroutines; its methods run
// one after the other, and waiting for their turn ends with the context. One directory of records belongs to one
// Tracker at a time: the store holds the lock.
package lkg
