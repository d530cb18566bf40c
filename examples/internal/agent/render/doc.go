// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render puts the config in use where the child process reads it: one file, replaced as a whole.
//
// # Promise
//
//   - A reader of the file sees the old payload or the new one, whole, whatever is killed when.
//   - After a nil error the file survives a power cut.
//   - The payload is written byte for byte. Nothing is decoded or encoded.
//   - [File.Remove] takes the file away as durably, for a drop-in that is left. A file that another tool writes is
//     refused by [Open], also through links.
//   - The file is readable by its owner only, and its temporary sibling has a name that no reader of a drop-in
//     directory takes for a config. At most one such sibling exists, after a kill; [Open] and [File.Write] remove it.
//
// # No promise
//
// Nothing is watched: an edit made by others stays until the next Write, which restores the payload. Package drift
// looks for them.
//
// # Concurrency
//
// One File has one writer at a time. Two processes must not render to the same path.
package render
