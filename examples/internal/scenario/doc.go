// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario plays rollouts over a fleet of many nodes: a good revision, one that is fatal for some of the nodes, and the way back. It shows how
// far each is, goes on when everything was seen that it must lead to, or gives up at a deadline and says what was not seen.
//
// What must be seen is a pure function of what was ([Act.Missing]), and so are the rows on the screen and the summary.
package scenario
