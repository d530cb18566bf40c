// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
)

// Fault is how calls of a [Disk] fail.
type Fault struct {
	// At is the call that fails, counted from 0 at [Disk.Inject].
	At int
	// Calls says which calls count and fail, by what they are: create, openwrite, open, read, write, truncate, chmod, sync,
	// close, mkdir, rename, remove, readdir, stat. nil = all. See Changes.
	Calls func(op string) bool
	// Forever has every call from At on fail, too.
	Forever bool
	// Err is the error; nil = none, but for Short.
	Err error
	// Done has the call do its work before it fails, as when the answer is lost.
	Done bool
	// Short has a write take half of what it was given, and fail with Err or, where that is nil, with io.ErrShortWrite. No
	// other call fails.
	Short bool
}

func (f Fault) String() string {
	what := fmt.Sprint(f.Err)
	if f.Short {
		what = "short write"
	}
	return fmt.Sprintf("%s at call %d, forever=%t, done=%t", what, f.At, f.Forever, f.Done)
}

// Faults lists ways to fail for use at every call: each error of a disk, once and for ever; an EIO after the work was done; and
// short writes. An fsync that fails once and then "succeeds", with the data lost, is what an EIO at [File.Sync] is.
func Faults() []Fault {
	var all []Fault
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EMFILE, syscall.EDQUOT, syscall.EINTR} {
		all = append(all, Fault{Err: errno}, Fault{Err: errno, Forever: true})
	}
	return append(all, Fault{Err: syscall.EIO, Done: true}, Fault{Err: syscall.EIO, Done: true, Forever: true},
		Fault{Short: true}, Fault{Short: true, Forever: true})
}

// Inject has calls fail from now on, instead of those that were to fail before. The zero Fault fails none. Run the same work with
// At = 0, 1, 2… until [Disk.Struck] says that it made fewer calls.
func (d *Disk) Inject(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.armed, d.calls = f, f.Err != nil || f.Short, 0
}

// Struck reports whether as many calls were made since Inject that its fault was reached.
func (d *Disk) Struck() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls > d.fault.At
}

func (d *Disk) struck() bool {
	return d.armed && (d.calls-1 == d.fault.At || d.fault.Forever && d.calls > d.fault.At)
}

// do is one call: all go through it, and fail in it.
func (d *Disk) do(op, name string, call func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	if d.fault.Calls == nil || d.fault.Calls(op) {
		d.calls++
		if d.struck() && !d.fault.Short {
			err = d.fault.Err
		}
	}
	if err == nil || d.fault.Done {
		if failed := call(); failed != nil {
			err = failed
		}
	}
	if err != nil && !errors.Is(err, io.ErrShortWrite) {
		err = &fs.PathError{Op: op, Path: name, Err: err}
	}
	return err
}

// Changes are the calls that fail on a disk that is full or read-only: it is still read. For use in [Fault].
func Changes(op string) bool {
	switch op {
	case "open", "read", "readdir", "stat", "sync", "close":
		return false
	}
	return true
}

// cut says how much of a write is taken, and how it fails. Called within do.
func (d *Disk) cut(n int) (int, error) {
	if !d.struck() || !d.fault.Short {
		return n, nil
	}
	if d.fault.Err != nil {
		return n / 2, d.fault.Err
	}
	return n / 2, io.ErrShortWrite
}
