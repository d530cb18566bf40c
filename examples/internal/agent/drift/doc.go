// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drift notices when the file that a config was rendered to is no longer what was rendered: when it happens, not at the next
// restart.
//
// A [Watch] writes the file, keeps the digest of what it wrote, and compares at each look; a file that was taken away is to stay away. Under [Report] it tells; under [Repair] it also
// writes the file again.
//
// # Promise
//
//   - Each drift is told once, over restarts, and before it is repaired or overwritten: the digest of what was written last, and of what was
//     told last, are one record of the Store. A process that dies in between may tell of one twice, and forgets none.
//   - A process that is killed while it writes the file takes neither the old nor the new content for a drift.
//   - Only what was rendered by this process is written by a repair, never what an earlier one has left on record.
//   - A Store that can't be written keeps no config from being rendered; it is tried again at each look.
//   - No content of the file is kept, told or returned: digests are.
//
// # No promise
//
// A change that is undone between two looks is not seen, and one that can't be told, on a disk that is full, is forgotten when the next config is
// rendered. What was read by others before a repair is not undone. A file that is gone when a
// process begins is no drift: it may have lain on a tmpfs. Owner, mode and times are not compared. The content of a file that isn't a regular one is not read: a link is a drift, whatever it leads to.
//
// # Concurrency
//
// All methods may be called from several goroutines. One Watch per file and Store.
package drift
