// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mutate shows that a test suite can fail: it runs the suite on deliberately broken copies of the source.
//
// [Explore] breaks a package by operators over its syntax tree (negate a condition, delete a call, swap two statements, …) and
// reports which mutants the package's tests kill. It runs on demand: make mutants PKG=./drain.
//
// [Incidents] holds the hand-written mutants: each stands for an incident or a safety rule. An incident names a function and
// an expression or statements in it. It holds when the function moves or its file is renamed. Every run of the tests checks that
// each incident applies, by parsing alone. BELAY_MUTANTS=all, or make mutants without PKG, runs them.
//
// The tree is never changed: the go command's overlay shows it the broken file in place of the real one. Tests of a mutant
// have BELAY_MUTANT in their environment.
package mutate
