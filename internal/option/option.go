// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package option

import (
	"fmt"
	"reflect"
	"strings"
)

// An Error lists what is wrong with the arguments of one call. OptionError of the root package is an alias
// of it.
type Error struct {
	// Call is the function: "drain.New".
	Call string
	// Missing names the arguments and fields that are required and nil or empty: "Options.Cache"; "receiver" means
	// that the method was called on a zero value.
	Missing []string
	// Problems has a sentence for each thing that is wrong, the missing ones included, in the order in which they were
	// found.
	Problems []string

	kind error
}

// Error is the call and its problems.
func (e *Error) Error() string { return e.Call + ": " + strings.Join(e.Problems, "; ") }

// Unwrap returns the sentinel error of the package whose call it is, if it has one.
func (e *Error) Unwrap() error { return e.kind }

// A Checker collects what is wrong with the arguments of one call.
type Checker struct{ err Error }

// For returns a Checker for a call, such as "drain.New". kind is the sentinel error that the result wraps; nil for
// none.
func For(call string, kind error) *Checker { return &Checker{Error{Call: call, kind: kind}} }

// Require notes that name is missing if value is nil, a nil pointer, map, slice, function or channel in an interface,
// or an empty string. remedy says what would be right: "see drain/kube.NewCache"; empty for a name that says so itself.
func (c *Checker) Require(name string, value any, remedy string) {
	if !isMissing(value) {
		return
	}
	c.err.Missing = append(c.err.Missing, name)
	problem := name + " is required"
	if remedy != "" {
		problem += " (" + remedy + ")"
	}
	c.err.Problems = append(c.err.Problems, problem)
}

// CheckRequired returns the error of a call with one argument that is required, or nil if it is there.
func CheckRequired(call, name string, value any, remedy string) error {
	c := For(call, nil)
	c.Require(name, value, remedy)
	return c.Err()
}

// NotMade returns the error of a method that was called on a zero value. maker is the constructor to use: "drain.New".
func NotMade(call, maker string) error {
	c := For(call, nil)
	c.err.Missing = []string{"receiver"}
	c.Wrong("the receiver is a zero value (see %s)", maker)
	return c.Err()
}

// Wrong adds a problem, formatted as by fmt.Sprintf.
func (c *Checker) Wrong(format string, args ...any) {
	c.err.Problems = append(c.err.Problems, fmt.Sprintf(format, args...))
}

// Err returns nil if nothing is wrong, and otherwise an [Error] with everything that is.
func (c *Checker) Err() error {
	if len(c.err.Problems) == 0 {
		return nil
	}
	return &c.err
}

// isMissing also finds a nil pointer in an interface, which is not equal to nil and panics at its first use.
func isMissing(value any) bool {
	if value == nil {
		return true
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan, reflect.Interface:
		return v.IsNil()
	case reflect.String:
		return v.Len() == 0
	default:
		return false
	}
}
