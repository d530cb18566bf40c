// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package screen writes to a terminal: lines that stay, and below them a part that is drawn over. Where the output is no terminal,
// nothing is drawn over and only the lines that stay are written.
//
// Nothing is drawn wider or higher than the terminal, because what wraps or scrolls away can't be drawn over.
//
// A Screen may be used by several goroutines.
package screen
