// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gotest runs go test in one or more modules, shows the packages as they finish and the output of what failed, and
// fails on a test that was skipped without leave.
//
//	gotest [-allow FILE] [-race auto|on|off] [-first "PACKAGES"] [-beside N] [-args "ARGS"] [-system | -list] [DIR ...]
//
// A skip is allowed by a line of the file: when, package, test and why, separated by blanks. When is "always" or
// "non-root"; package is the path inside the module; test is a regular expression for the whole name; why is the rest of
// the line. Everything from a # on is a comment.
//
// The race detector needs a C compiler. With -race auto, gotest says so where there is none, and runs without it.
//
// A test that does a share of its work under the race detector has an attribute that says so; see internal/raceshare. When its package is through,
// gotest runs those tests once more without the detector, in which they do all of it, and counts them again. Where the detector is off,
// they have done all of it, and run once.
//
// The modules after the first, and what runs once more, run beside the first module, one package at a time, and many when it is through.
// What runs is given GOGC=400, unless the environment has another, and no second of sleep at the end of a process with the race detector.
//
// Packages that -first names, by their paths inside a module, are started before all others: those that take longest should not begin
// when the rest is over. A module that has none of them runs as usual.
//
// The last line has the form "N passed, N failed, N skipped". The exit code is 0 if everything passed, else 1.
package main
