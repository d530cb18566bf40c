// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkpoint keeps named records on a node's disk so that an acknowledged write survives any crash.
//
//	package example
//
//	import (
//		"context"
//		"github.com/belayproject/belay/checkpoint"
//	)
//
//	func save(ctx context.Context, dir string) ([]byte, error) {
//		store, err := checkpoint.Open(dir, checkpoint.Options{})
//		if err != nil {
//			return nil, err
//		}
//		defer store.Close()
//		if err := store.Put(ctx, "current", []byte("a record")); err != nil {
//			return nil, err
//		}
//		return store.Get(ctx, "current")
//	}
//
// A [Store] is one directory. A stream is a named record in it, for example "current" or "checkpoints/4f1d…".
// Each [Store.Put] of a stream makes a new, numbered, immutable file (a generation); the value of a stream is the
// highest generation that verifies. No pointer file, link or in-place change exists: one rename is the whole commit.
//
// # What is promised
//
// When Put returned nil:
//
//   - Durable: the record survives any later power cut, kill or kernel panic, on ext4, xfs and btrfs with write
//     barriers on ([Store.Durable] tells).
//   - Atomic: a reader, at any time and after any crash, sees the whole old record or the whole new one.
//   - Monotonic: the generations of a stream rise, and no number is used twice, not after damage and not after
//     [Store.Delete].
//   - Ordered: the older record stays readable until the newer one is acknowledged.
//
// Every error of Put and Delete matches exactly one of [ErrNotWritten] (the old value stands, retrying is safe) and
// [ErrIndeterminate] (the old or the new value, a crash decides). After ErrIndeterminate the next Put of the stream
// writes a fresh generation, also where the payload is the same, and so does the next Open: what an fsync failed to
// confirm is never confirmed by reading it back or by another fsync. A store that can not write stays readable.
//
// Damage never looks like absence. A file that does not verify is set aside under a name that says why, the next
// lower generation is returned, and the damage is reported. If no generation verifies, reading returns [ErrCorrupt],
// also after a restart, until the stream is put or deleted. [fs.ErrNotExist] means that there is no record.
//
// # What is not promised
//
//   - Nothing holds against a disk that lies about flushes, or against whoever runs as the same user or as root.
//   - Nothing here is confidential beyond file modes: files are 0600, directories 0700, payloads are not encrypted.
//   - Several streams do not change together. What must change together belongs into one record.
//   - No decision uses the wall clock or a file's times, so nothing is known about when a record was written.
//
// # The protocol
//
// Put creates a new file in the stream's directory (0600 before the first byte, whatever the umask), writes it, fsyncs
// and closes it, renames it to its number without replacing anything, fsyncs the directory on a descriptor held since
// Open, and only then acknowledges and drops what the new generation made surplus. That is 2 fsyncs; concurrent Puts
// into one directory share the second. The first Put into a new directory costs one more, for the entry of the
// directory itself. A payload equal to the newest acknowledged one costs none. After a failed fsync the file is
// abandoned and a new one is written, at most 3 times in all. The payload is never copied: up to 256 KiB header,
// payload and end mark go to the kernel in one call; beyond that the payload goes first, and the disk works on it while
// its digest is made.
//
// Generations are dropped beyond [Options.Generations], but never one of the two newest that verified.
//
// # The format
//
// A file is one ASCII header line, the raw payload, and a fixed end mark; its length must be exactly the sum.
//
//	belay-record 1 stream=… generation=… length=… writer=… machine=… payload-sha256=… header-sha256=…
//
// The last field is the digest of all header bytes before it, in every format version to come, so a newer format is
// told from damage. It covers the payload's digest, and so the payload. A payload of 0 bytes is a record like any
// other; a file of 0 bytes is damage. The header holds no UID or resourceVersion of an object: those are in the
// payloads of those who have them.
//
// # Concurrency
//
// A Store may be used by several goroutines. Puts and Deletes of one stream run one after the other, and waiting for
// a turn ends with the context; those of different streams run at once. Reads wait for nobody but a Delete of their
// stream that is under way. One process has a directory open at a time: Open takes a lock that ends with the process
// and returns [ErrLocked] where another one holds it. A [Reader] needs no lock and may be used beside a live Store.
//
// Linux only: elsewhere the package builds, and Open returns [errors.ErrUnsupported].
package checkpoint
