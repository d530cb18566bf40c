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
// Two pure functions hold every rule. [Decide] answers, at a start, "which config do I use, and why?". The one behind
// [Tracker.Healthy] answers, while a config runs, "has it earned to be the last known good one?". Neither reads a
// clock, a file or the network, so the same functions serve production, dry runs and a status command. [Tracker] keeps
// what they need in records and holds the order of the writes.
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
//   - A config becomes the last known good one only after more than its trial of healthy time, measured by a monotonic
//     clock, the last part of which was one healthy run. Planned restarts and reboots are bridged; a start that counts
//     against the config takes away what came before it. No clock step and no restart shortens it.
//   - Trust is not final: a config is judged for as long as it is in use, whichever role it has. It is left when
//     more ends than it tolerates are held against it, or when a required probe fails for too long.
//   - A config that was left is listed as bad only if a config below it lives where it does not. While nothing lives,
//     nothing is listed, and the assigned config is tried again and again.
//   - An end that was not by the config (see [Fault]) counts against none.
//   - A rejected config is on record before its replacement is named. Its bytes are not used again, by the same program
//     and in whichever object, until a person calls [Tracker.Forget].
//   - Going back needs no network, and never changes the `current` record.
//   - A fallback that does not live is left for the one before it, then for the local baseline. It is used again after
//     something was healthy, or where nothing lives.
//
// # A case
//
// A config that is left is the suspect of a [Case]. These are its phases:
//
//	compare   The suspect is avoided, and what is below it runs. If that is healthy for Case.Witness, the suspect is
//	          tried again. If it does not live either, the next one below is used. Two ends with the signature of the
//	          suspect show that as well as more ends than it tolerates; in a case about boots, any two boots.
//	retry     The suspect runs. If it is healthy for Case.Acquit, the case is closed. If it tolerates its ends no more,
//	          or a probe fails for too long, it is listed as bad. If it was left for crashes or a probe, and more than 3
//	          short runs, earlier ones included, ended with the machine or the agent, what is below it has shown nothing
//	          about that: it is compared once more.
//	common    Nothing lives, not even the local config. All ends are forgiven, and the assigned config is used. A healthy
//	          run closes the case. The ends since then go on counting until a run is long enough to forgive them, or the
//	          trial is over.
//
// A case ends as well with a new last known good config, with [Tracker.Forget], and with another assignment if its
// suspect was the assigned config.
//
// # What is not promised
//
//   - A suspect is not tried again while what runs below it is neither healthy for long enough nor dead. It is not
//     tried again either where [Tracker.Healthy] is never called.
//   - A config that lives for an hour between two crashes is kept. What is no config and ends runs at random, now after
//     minutes, now after an hour, can have a good config listed.
//   - Another assignment closes the case: of two bad configs that are assigned in turn, each before the other's case is
//     over, none is listed.
//   - A config that changes the disk so that no other config lives is taken for a common cause.
//   - Two outages that hit exactly the first tries and the second ones list a config that is not to blame.
//   - A config that chooses which program runs must have that checked: a program that can not be executed counts
//     against no config.
//   - A belief record (which configs are bad, which starts were seen, which case is open) that can not be read is set
//     aside with a [Notice] and starts empty: a bad config may then be tried again, within its threshold.
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
