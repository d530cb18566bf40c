// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package durable replaces one file by another one, so that a power cut leaves the old content or
// the new content.
//
// # What is promised
//
// When [Replace] returned nil, the file has the new content and survives any later power cut, on
// ext4, xfs and btrfs with write barriers on. After an error that does not match [ErrUnconfirmed],
// the file is what it was; after one that does, it is the old file or the new one. A reader sees
// one of the two, never a part.
//
// # What is not promised
//
// Owner, extended attributes, hard links and times of the old file are not kept. Directories are
// not made.
//
// # Concurrency
//
// Any number of goroutines and processes may replace one file: they do so one after the other, by a
// lock on the temporary file, which has a fixed name beside the file. What a killed process left
// there is removed by the next call. A call waits for others up to 30 seconds; the error then names
// the temporary file.
//
// The package is for those of this module that may not import package checkpoint, which is its
// public face.
package durable
