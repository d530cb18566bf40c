// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package badinput calls every exported function and method of the library with bad input, and reports what a caller
// must never see: a panic, a call that does not end, a goroutine that stays, and an argument that is missing without
// an error that names it.
//
// A generated table, zz_generated_calls_test.go, lists the functions and types of all public packages, and has a stub
// of each interface. cmd/generate writes it, and a test fails while it is out of date, so that a new function is
// covered on the day it is exported. [Suite.Run] makes the calls of the table:
//
//   - a function: with zero arguments; with a nil pointer, interface, function, map or slice in the place of one
//     argument, and of one field of an options struct; with a context that is cancelled; twice
//   - a method: on a zero receiver; on a sample receiver, as a function; twice at a time if it is Run, Start, Close or
//     Stop; after Close or Stop
//   - what a call returns without an error: each of its methods
//
// A context ends soon after its call has begun, and each call has to end with it. Calls run in child processes,
// because a panic in a goroutine of the library ends the process: [Suite.RunIsolated] then names the call, and goes
// on with the next.
//
// A nil context is left out: the standard library and this one both require a context.
package badinput
