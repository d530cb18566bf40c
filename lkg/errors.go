// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkg

import (
	"errors"
	"strconv"
)

// ErrInvalid is in the chain of every error that says that an argument is not acceptable. The text names
// the field, or all arguments that are missing.
var ErrInvalid = errors.New("invalid value")

// ErrRejected is returned where a config that is listed as bad can not be what was asked for.
var ErrRejected = errors.New("config is listed as bad")

// ErrRecord is in the chain of every error that says that the store did not take, or did not give, a record. The
// Tracker still works: what it learned stays in memory, and it writes that with the next chance. The error of the store
// is in the chain as well, and the text names the record.
var ErrRecord = errors.New("record is not written or not read")

// ErrNotRunning is returned where the current config would have to be in use, and is not.
var ErrNotRunning = errors.New("current config is not in use")

// A FieldError says which value is not acceptable and what would be. errors.Is(err, ErrInvalid) holds.
type fieldError struct {
	Field string // as the caller knows it, for example "crashLoopThreshold"
	Value string // as given
	Want  string // what would be right, for example "must be between 0 and 10"
}

// A recordError says that the store did not take, or did not give, a record. The Tracker still works: what it
// learned stays in memory and is written with the next chance.
type recordError struct {
	Op     string // what was being done, for example "recording the start"
	Stream string // the record
	Err    error
}

// A BaselineError is the one reason to refuse to start: the local config, to which everything else falls back,
// is itself not good.
type BaselineError struct {
	Origin  Origin
	Outcome checkOutcome
	Err     error // what the check said; may be nil
}

func (e *fieldError) Error() string { return e.Field + " is " + e.Value + ": " + e.Want }

// Unwrap gives ErrInvalid.
func (e *fieldError) Unwrap() error { return ErrInvalid }

func (e *recordError) Error() string {
	text := e.Op + ": record " + strconv.Quote(e.Stream)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is reports that the error is an [ErrRecord].
func (e *recordError) Is(target error) bool { return target == ErrRecord }

// Unwrap gives the error of the store.
func (e *recordError) Unwrap() error { return e.Err }

// summary is the text without the details.
func (e *BaselineError) summary() string {
	return "local baseline (" + string(e.Origin) + ") is " + e.Outcome.String()
}

func (e *BaselineError) Error() string {
	s := e.summary()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives what the check said.
func (e *BaselineError) Unwrap() error { return e.Err }
