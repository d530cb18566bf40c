// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/belayproject/belay/configsync"
)

// maxShown is the most bytes of output that an [Error] holds, under Options.ShowOutput.
const maxShown = 512

// An Error says why a config is not proven. It wraps configsync.ErrUndecided unless the program has refused the config.
type Error struct {
	// Digest is that of the object, and Version is Options.Version.
	Digest, Version string
	// Refused says that the program refuses the config.
	Refused bool
	// Status is the exit status; -1 where the program did not exit by itself.
	Status int
	// Took is how long the program ran.
	Took time.Duration
	// Output is the end of what it wrote, in one line; empty unless Options.ShowOutput is set.
	Output string
	// Err is what was in the way, if anything was.
	Err error
}

// Error says what happened, in words that are the same for each of two equal failures.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "proving config %s for version %q: ", e.Digest, e.Version)
	switch {
	case e.Refused:
		fmt.Fprintf(&b, "the program refuses it with exit status %d after %s", e.Status, roughly(e.Took))
	case e.Err != nil:
		fmt.Fprintf(&b, "%v: %v", configsync.ErrUndecided, e.Err)
	default:
		fmt.Fprintf(&b, "%v: the program ended with exit status %d after %s", configsync.ErrUndecided, e.Status, roughly(e.Took))
	}
	if e.Output != "" {
		b.WriteString("; it says: " + e.Output)
	}
	return b.String()
}

// Unwrap gives configsync.ErrUndecided and what was in the way.
func (e *Error) Unwrap() []error {
	switch {
	case e.Refused:
		return nil
	case e.Err == nil:
		return []error{configsync.ErrUndecided}
	}
	return []error{configsync.ErrUndecided, e.Err}
}

// undecided is the error about a subject of which nothing is known.
func (s subject) undecided(err error) *Error {
	return &Error{Digest: s.Digest, Version: s.Version, Status: -1, Err: err}
}

var (
	errKilled = errors.New("the program was killed by a signal")
	errSlow   = errors.New("the program was killed: it did not end in time")
)

// roughly spells a duration so that a status does not change with each run.
func roughly(d time.Duration) string {
	if d < time.Second {
		return "less than 1s"
	}
	return d.Round(time.Second).String()
}

// tail keeps the end of what is written, and never fails. It has no ReadFrom, which io.Copy would prefer.
type tail struct{ kept []byte }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	p = p[max(0, n-maxShown):]
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-maxShown):]
	return n, nil
}

// line is what was kept in one line of at most maxShown bytes, without what a terminal would obey.
func (t *tail) line() string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, string(t.kept))
	return strings.Join(strings.Fields(clean), " ")
}
