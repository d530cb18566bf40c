// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"
	"fmt"
	"strconv"
)

// Every error of Put and Delete matches exactly one of these two.
var (
	// ErrNotWritten says that the old value stands. Retrying is safe.
	ErrNotWritten = errors.New("nothing was written")
	// ErrIndeterminate says that the old or the new value stands, and that only the next success of the same call, or
	// the next Open, settles which.
	ErrIndeterminate = errors.New("the write was not confirmed")
)

// The causes that callers branch on.
var (
	// ErrFull says that the disk or the store's quota has no room. Every earlier record stays readable.
	ErrFull = errors.New("no room for the record")
	// ErrLocked says that another process has the store open. The text of the error names the process, if that is
	// known.
	ErrLocked = errors.New("the store is in use")
	// ErrTooLarge says that a payload is above [Options.MaxPayload].
	ErrTooLarge = errors.New("the payload is too large")
	// ErrReadOnly says that the file system is mounted read-only, or turned so after an error. Reading goes on.
	ErrReadOnly = errors.New("the file system is read-only")
	// ErrCorrupt says that a record does not verify. From Get and Read it is a [CorruptError]: nothing of the stream
	// does.
	ErrCorrupt = errors.New("the record is damaged")
	// ErrTooNew says that a newer version of this package wrote the record. It is left as it is: neither Put nor
	// Delete touches its stream, so that a downgrade discards nothing.
	ErrTooNew = errors.New("the record has a newer format")
	// ErrForeign says that a record belongs to another machine, stream or generation than its place says: a cloned
	// disk or a copied file. It counts as absent and is set aside.
	ErrForeign = errors.New("the record belongs elsewhere")
	// ErrUntrusted says that a file or directory is not what this package makes: a link, a special file, a file with
	// a second name, another owner, or writable for others.
	ErrUntrusted = errors.New("not trusted")
	// ErrMoved says that the store's directory, or one in it, is no longer the one that was opened.
	ErrMoved = errors.New("the directory was moved or replaced")
	// ErrNotOpen says that the Store was not made by [Open], the Reader by [OpenReader], or the FileSet by
	// [OpenFileSet].
	ErrNotOpen = errors.New("the store was not opened: make it with checkpoint.Open, OpenReader or OpenFileSet")
	// ErrName says that a stream or directory name is not one that this package accepts; see [ValidateStream].
	ErrName = errors.New("the name is not acceptable")
)

// lockedError says which process has the store open. errors.Is(err, ErrLocked) holds.
type lockedError struct {
	Dir string
	PID int // 0 where the holder did not say
}

func (e *lockedError) Error() string {
	holder := "another process"
	if e.PID != 0 {
		holder = "process " + strconv.Itoa(e.PID)
	}
	return "directory " + strconv.Quote(e.Dir) + ": " + ErrLocked.Error() + " by " + holder
}

func (e *lockedError) Unwrap() error { return ErrLocked }

// A CorruptError says that a stream has records, and none that verifies. errors.Is(err, ErrCorrupt) holds.
type CorruptError struct {
	Stream string
	Damage []Damage // at least one, highest generation first
}

func (e *CorruptError) Error() string {
	text := "stream " + strconv.Quote(e.Stream) + ": no generation verifies"
	for i := range e.Damage {
		text += "; " + e.Damage[i].what()
	}
	return text
}

// Unwrap gives ErrCorrupt and the damage.
func (e *CorruptError) Unwrap() []error {
	errs := []error{ErrCorrupt}
	for i := range e.Damage {
		errs = append(errs, &e.Damage[i])
	}
	return errs
}

// The reasons of damage.
const (
	reasonEmpty      = "empty"      // a file of 0 bytes
	reasonTruncated  = "truncated"  // shorter than its header says
	reasonTrailing   = "trailing"   // longer than its header says
	reasonHeader     = "header"     // the header does not verify
	reasonDigest     = "digest"     // the payload does not verify
	reasonEndMark    = "endmark"    // the end mark is not there
	reasonOversize   = "oversize"   // larger than the whole store may be
	reasonForeign    = "foreign"    // verifies, and belongs to another machine, stream or generation
	reasonTooNew     = "toonew"     // verifies as a format that this version does not know
	reasonUntrusted  = "untrusted"  // not a plain file of ours
	reasonUnreadable = "unreadable" // the system returned an error twice
	reasonMissing    = "missing"    // known to this Store, and gone from the directory
	reasonZeroed     = "zeroed"     // a legacy file that ends in zeros
	reasonContent    = "content"    // a legacy file whose content the caller refused
	reasonChanged    = "changed"    // a file of a FileSet that another program wrote
)

// Damage says what is wrong with one file of a stream. It holds no part of a payload.
type Damage struct {
	Stream     string // of a file of a FileSet: its path
	Generation uint64 // 0 where the damage is that of a directory
	Reason     string
	Err        error // the system's error or the detail, may be nil
}

func (d *Damage) what() string {
	text := "is " + d.Reason
	if d.Generation > 0 {
		text = fmt.Sprintf("generation %d is %s", d.Generation, d.Reason)
	}
	if d.Err != nil {
		text += ": " + d.Err.Error()
	}
	return text
}

func (d *Damage) Error() string { return "stream " + strconv.Quote(d.Stream) + ": " + d.what() }

// Unwrap gives the sentinel of the reason (ErrCorrupt, ErrForeign, ErrTooNew, ErrUntrusted; none for an unreadable
// file, which may be whole) and Err.
func (d *Damage) Unwrap() []error {
	var errs []error
	switch d.Reason {
	case reasonForeign:
		errs = append(errs, ErrForeign)
	case reasonTooNew:
		errs = append(errs, ErrTooNew)
	case reasonUntrusted:
		errs = append(errs, ErrUntrusted)
	case reasonUnreadable, reasonChanged:
	default:
		errs = append(errs, ErrCorrupt)
	}
	if d.Err != nil {
		errs = append(errs, d.Err)
	}
	return errs
}

// notWritten gives an error of Put or Delete its class and, where the system's error has one, its cause.
func notWritten(err error) error {
	switch {
	case errors.Is(err, ErrNotWritten) || errors.Is(err, ErrIndeterminate):
		return err
	case isFull(err) && !errors.Is(err, ErrFull):
		return fmt.Errorf("%w: %w: %w", ErrNotWritten, ErrFull, err)
	case isReadOnly(err):
		return fmt.Errorf("%w: %w: %w", ErrNotWritten, ErrReadOnly, err)
	}
	return fmt.Errorf("%w: %w", ErrNotWritten, err)
}

// indeterminate is notWritten for what failed after the point of no return.
func indeterminate(err error) error {
	if isReadOnly(err) {
		return fmt.Errorf("%w: %w: %w", ErrIndeterminate, ErrReadOnly, err)
	}
	return fmt.Errorf("%w: %w", ErrIndeterminate, err)
}
