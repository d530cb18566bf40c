// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gotest runs go test in one or more modules, shows the packages as they finish and the output of what failed, and
// fails on a test that was skipped without leave.
//
//	gotest [-allow FILE] [-race auto|on|off] [-first "PACKAGES"] [-args "ARGS"] [DIR ...]
//
// A skip is allowed by a line of the file: when, package, test and why, separated by blanks. When is "always" or
// "non-root"; package is the path inside the module; test is a regular expression for the whole name; why is the rest of
// the line. Everything from a # on is a comment.
//
// The race detector needs a C compiler. With -race auto, gotest says so where there is none, and runs without it.
//
// Packages that -first names, by their paths inside a module, are started before all others: those that take longest should not begin
// when the rest is over. A module that has none of them runs as usual.
//
// The last line has the form "N passed, N failed, N skipped". The exit code is 0 if everything passed, else 1.
package main
