// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report tells a person, or a script, what a node's config is and why: which one is in use, since when, what
// was rejected, how far a trial is, and what the next start would do.
//
// [Build] is pure: what is on record and what a live agent says go in, a [Document] comes out. The Document is also the
// JSON and YAML form; fields are only ever added to it. [Write] prints it.
//
// # Promise
//
//   - Nothing of a config's content is shown: names, UIDs, digests, field paths and reasons are.
//   - The next start comes from the function that decides at starts.
//
// # Concurrency
//
// All functions may be called from several goroutines.
package report
