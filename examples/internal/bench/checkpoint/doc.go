// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command checkpoint measures checkpoint.Store.Put beside the raw protocol (write a temporary file, fsync, rename, fsync the
// directory) on the same disk, in the same run, turn by turn; Get beside a plain read, without and with a digest; and what two slots
// overwritten in place would cost instead of a Put. It prints one line a figure; the last word of a line that has a
// bar is "ok" or "SHORT". The exit code is 1 where a line is short, 2 where nothing could be measured.
//
// Times depend on the machine and its load: only the ratios of medians and the counts are judged.
package main
