// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package option has the error of a call whose options are missing or cannot be used. Every constructor of this library
// returns it, with all problems of the call at once, and each with its remedy:
//
//	drain.New: Options.Cache is required (see drain/kube.NewCache); Options.Client is required (see drain/kube.NewClient)
//
// A program that wants to know which options these are asks for the type:
//
//	_, err := drain.New(drain.Options{})
//	var wrong *option.Error
//	if errors.As(err, &wrong) {
//		fmt.Println(wrong.Call, wrong.Missing)
//	}
//
// The package imports the standard library only. Its values are not changed after they are made.
package option

import "strings"

// An Error lists what is wrong with the arguments of one call.
type Error struct {
	// Call is the function: "drain.New".
	Call string
	// Missing names the arguments and fields that are required and nil or empty: "Options.Cache"; "receiver" for a method
	// of a value that its constructor did not make.
	Missing []string
	// Problems has a sentence for each thing that is wrong, the missing ones included, in the order in which they were
	// found.
	Problems []string
	// Kind is the sentinel error of the package whose call it is; nil if it has none.
	Kind error
}

// Error is the call and its problems.
func (e *Error) Error() string { return e.Call + ": " + strings.Join(e.Problems, "; ") }

// Unwrap returns Kind.
func (e *Error) Unwrap() error { return e.Kind }
