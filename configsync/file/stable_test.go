// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"syscall"
	"testing"

	"github.com/belayproject/belay/configsync"
)

// Two readings in a row must agree. One that saw a change begins anew, and trouble ends it.
func TestStable(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		readings string // a letter is a content, - a change, ! trouble
		want     string
		err      error
	}{
		"at rest":            {"aa", "a", nil},
		"after a change":     {"abb", "b", nil},
		"back and forth":     {"ababb", "b", nil},
		"change in between":  {"a-aa", "a", nil},
		"never at rest":      {"ababababab", "", configsync.ErrUnreachable},
		"agree too late":     {"abcdeff", "", configsync.ErrUnreachable},
		"changes for ever":   {"------------", "", configsync.ErrUnreachable},
		"trouble at once":    {"!", "", broken},
		"trouble after once": {"a!", "", broken},
	} {
		t.Run(name, func(t *testing.T) {
			n := -1
			got, err := stable(func() (map[string]string, error) {
				n++
				switch r := c.readings[n]; r {
				case '-':
					return nil, errChanging
				case '!':
					return nil, broken
				default:
					return map[string]string{"k": string(r)}, nil
				}
			})
			if !errors.Is(err, c.err) || (c.err == nil && !maps.Equal(got, map[string]string{"k": c.want})) {
				t.Errorf("stable = %v, %v; want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

// R-CS-27, R-CS-30: absence and refusal are told apart from trouble.
func TestClassified(t *testing.T) {
	for err, want := range map[error]error{
		fs.ErrNotExist: configsync.ErrMissing, fs.ErrPermission: configsync.ErrForbidden, syscall.EIO: configsync.ErrUnreachable,
	} {
		for _, class := range []error{configsync.ErrMissing, configsync.ErrForbidden, configsync.ErrUnreachable} {
			if got := errors.Is(classified(fmt.Errorf("opening: %w", err)), class); got != errors.Is(want, class) {
				t.Errorf("%v counts as %v: %t", err, class, got)
			}
		}
	}
}
