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
// [Histories] are lives of a node by the thousand, each from a seed: restarts, reboots, panics, clock jumps, and
// configs that are good, or crash within seconds or slowly. They show that a [Rule] neither rejects a good config nor
// promotes a bad one, and which limits are right for a fleet; [Table] prints that beside what the kubelet's dynamic
// config did. Their trackers are real ones, and a history that broke a rule is told again by [Histories.Replay].
//
// Embedders use a Machine with their own checks, limits, and tracker: whatever wraps or replaces the Tracker must keep
// the same rules. Nothing here is safe for concurrent use.
package lkgtest
