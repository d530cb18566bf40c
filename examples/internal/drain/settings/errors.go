// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// A FlagError says which flag is wrong. Its text has the flag, its value and what would be right.
type FlagError struct {
	// Flag is without dashes.
	Flag string
	// Value is as given.
	Value string
	// Want completes "--flag=value: …".
	Want string
}

// Error is one line.
func (e *FlagError) Error() string { return fmt.Sprintf("--%s=%q: %s", e.Flag, e.Value, e.Want) }

// A UsageError is a command line that can't be obeyed, whatever the state of the cluster.
type UsageError struct{ Err error }

// Error is that of what is wrong.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap gives what is wrong.
func (e *UsageError) Unwrap() error { return e.Err }

// Usage makes a UsageError; nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{Err: err}
}

// ParseError turns what the flag parser says into a UsageError, and where a value is wrong says what would be right.
func ParseError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return Usage(err)
	}
	f := bad.GetFlag()
	want := map[string]string{
		"duration": "must be a duration, such as 30s or 10m", "int64": "must be a whole number", "float64": "must be a number",
		"bool": "must be true or false",
	}[f.Value.Type()]
	if r, ok := f.Value.(*refusal); ok {
		want = r.want
	}
	if _, ok := f.Value.(*DryRun); ok {
		want = "must be none, client or server"
	}
	if want == "" {
		return Usage(err)
	}
	return Usage(&FlagError{Flag: f.Name, Value: bad.GetValue(), Want: want})
}

// problems gathers FlagErrors.
type problems []error

func (p *problems) need(ok bool, flag string, value any, want string) {
	if !ok {
		*p = append(*p, &FlagError{Flag: flag, Value: fmt.Sprint(value), Want: want})
	}
}

func (p *problems) add(err error) {
	if err != nil {
		*p = append(*p, err)
	}
}

// join is a UsageError of all problems, or nil.
func (p *problems) join() error { return Usage(errors.Join(*p...)) }
