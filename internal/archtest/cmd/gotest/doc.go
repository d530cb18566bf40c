// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gotest runs go test in one or more modules, shows the packages as they finish and the output of what failed, and
// fails on a test that was skipped without leave.
//
//	gotest [-allow FILE] [-race auto|on|off] [-first "PACKAGES"] [-only "PACKAGES"] [-beside N]
//	       [-args "ARGS"] [-system | -proofs] [-list] [DIR ...]
//
// A skip is allowed by a line of the file: package, test and why, separated by blanks. Package is the path inside the repository; test is
// a regular expression for the whole name; why is the rest of the line. Everything from a # on is a comment.
//
// A test of the system tier (see internal/tier) is skipped and counted apart. With -system, gotest finds those tests
// in the sources, sets BELAY_TIER, and runs them and no other; one that does not run is a failure. With -proofs it
// does the same for the tests that leave their work, or a part of it, to make proofs. With -list it prints the tests
// of either and runs nothing. All read the repository in the first DIR.
//
// With -race auto the packages whose tests start a control plane run without the race detector, beside the others,
// which have it: with it such a test takes twice the processor time, most of which servers and clients of them use.
// The detector needs a C compiler; where there is none, gotest says so, and runs without it. With -race on, as make
// race has it, all packages have it. The report counts the tests that do a share of their work under the race
// detector; see internal/raceshare.
//
// The modules after the first run beside it, -beside packages at a time. What runs is given GOGC=400, unless the environment has another,
// and no second of sleep at the end of a process with the race detector.
//
// Packages that -first names, by their paths inside the repository, are started before all others of their module: those that take
// longest should not begin when the rest is over.
//
// The report ends with the packages that took longest. The last line has the form "N passed, N failed, N skipped". The exit code is 0 if everything passed, else 1.
package main
