// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package screen shows the demo to people: a table that is redrawn in place on a terminal, or one line per change where the
// output is no terminal, and sentences in between.
//
// What is drawn is a pure function of the rows and the width ([Table]), so that golden files hold it. [Screen] only moves
// the cursor. Nothing is drawn wider than the terminal, because a line that wraps can't be drawn over.
//
// A Screen may be used by several goroutines.
package screen
