// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lkgtest proves that a node's choice of config survives kills, full disks, reboots and clock steps.
//
// A [Machine] is a simulated node around a real [lkg.Tracker]: its store, clock and boots are simulated, so that hours
// of trial take milliseconds. It keeps its own account of what happened (how often a config crashed, how long it was
// healthy, what was rejected) and, after every call, compares the verdict and the durable records with the rules of
// package lkg. [Explore] runs a story once for every write that it makes, and has the machine killed at that write, or
// the disk refuse everything from that write on.
//
// Embedders use it with their own checks, limits, and tracker: whatever wraps or replaces the Tracker must keep the
// same rules. Nothing here is safe for concurrent use.
package lkgtest
