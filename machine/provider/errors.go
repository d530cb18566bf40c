// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Class says what kind of trouble an error is, and so what to do about it. None of them is for ever: whatever the class, the call is made again
// after its backoff, or at once when the machine was changed.
type Class string

// Classes of errors.
const (
	// InvalidConfig: the config can't be understood, or can't be made. Nothing was done.
	InvalidConfig Class = "InvalidConfig"
	// Unauthorized: credentials are missing, wrong, or have too few rights.
	Unauthorized Class = "Unauthorized"
	// Stockout: there is no capacity or quota. Another zone may have some.
	Stockout Class = "Stockout"
	// RateLimited: too many calls; see [Error.After].
	RateLimited Class = "RateLimited"
	// Conflict: the token is in use with another digest, or is used up.
	Conflict Class = "Conflict"
	// Unavailable: the provider can't be reached, is overloaded or timed out. The call may have had its effect.
	Unavailable Class = "Unavailable"
	// NotSupported: the provider can't do that at all.
	NotSupported Class = "NotSupported"
	// NotFound: there is no such instance, for certain.
	NotFound Class = "NotFound"
	// Internal: anything else. The call may have had its effect.
	Internal Class = "Internal"
)

// An Error is what a call of a provider failed with. Make it with [Errorf].
type Error struct {
	Class Class
	// After is when the provider asks to be called again; 0 leaves that to the class.
	After time.Duration
	Err   error
}

// Error returns the class and the message.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Class, e.Err) }

// Unwrap returns what was wrapped.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error of a class, with the verbs of fmt.Errorf. The text must not contain secrets.
func Errorf(class Class, format string, args ...any) *Error {
	return &Error{Class: class, Err: fmt.Errorf(format, args...)}
}

// ClassOf returns the class of an error: that of the outermost [Error] in it, Unavailable for a ctx that has ended, Internal for others, and
// "" for nil.
func ClassOf(err error) Class {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Class
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Unavailable
	}
	return Internal
}

// AfterOf returns when the provider asks to be called again; 0 if it does not say.
func AfterOf(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.After
	}
	return 0
}
