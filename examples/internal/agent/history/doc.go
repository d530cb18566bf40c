// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history keeps what has happened to the configs of a node: the story, where a status has only the last line.
//
// A [Journal] is a configsync.Reporter. It compares each status with the one before, and writes down the edges: adopted, promoted,
// rejected, rolled back, reset, forgotten, in trouble, out of it, out of choices, on trial for too long, started. A [Teller] passes the entries on, to events
// of an API server for example.
//
// # Promise
//
//   - What is written down is durable, and survives any crash: the journal is one record of the Store, and what was compared last is in
//     the same record. So an edge that a process died on is found by the next one, and none is written down twice.
//   - It is bounded: [maxEntries] entries, the oldest go first. The same thing again and again is one entry with a count. Totals never shrink
//     and outlive restarts, so that metrics may be taken from them.
//   - A record that can't be read costs the story before it, and is an entry itself. It never stops anything.
//   - A Teller passes each entry on at least once, in order, unless it is dropped for its age before. It gives a restart no more than a
//     moment of its time.
//
// # No promise
//
// Edges between two reports that cancel each other out are not seen. Times are of the wall clock, for people: nothing is decided by them, and a clock that was set may
// make a trial look overdue.
// Entries hold names, UIDs, digests and reasons, and no value of a config.
//
// # Concurrency
//
// All methods may be called from several goroutines. One Journal per Store.
package history
