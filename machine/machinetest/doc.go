// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machinetest is the conformance suite of machine providers, and a provider in memory that passes it.
//
// [Run] checks one provider against what package github.com/belayproject/belay/machine/provider promises, one subtest a rule: [Rules] lists
// them. A [Harness] says how to reach the provider and its backend. What it leaves out can't be checked: that rule is skipped, and the [Report]
// names it and says what is missing. [Check] does the same without a test, for a program.
//
// [Memory] is a provider with all abilities for the tests of whoever uses providers: it is slow, behind, full, refused and cut off on demand.
//
// # What is not promised
//
// A provider that passes keeps its promises in the situations that the suite makes. It says nothing about speed, about what happens inside of
// an instance, or about faults that the harness can't inject.
//
// # Concurrency
//
// A suite runs its rules one after the other, and makes calls concurrently where that is what it checks. Two suites on one backend disturb each
// other, as both count what it holds. A [Memory] may be used by any number of goroutines.
//
// # Crashes
//
// A suite that is killed leaves its instances behind. Their clusters are named "suite-" and a random number.
package machinetest
