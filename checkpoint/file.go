// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/belayproject/belay/internal/durable"
	"github.com/belayproject/belay/internal/option"
)

// WriteFile makes data the content of the file at path with a mode, as [os.WriteFile] does, and as
// a whole: when it returned nil, the file survives any later power cut; at any other time a reader,
// also after a crash, sees the old content or the new content. It is for one file in a format of
// others. Files that must agree need a [FileSet]; records of a program's own belong in a [Store].
//
// Every error matches exactly one of [ErrNotWritten] and [ErrIndeterminate] and, if there is one of
// these causes, [ErrFull], [ErrReadOnly], [fs.ErrNotExist] (a directory is missing: WriteFile makes
// none), or [fs.ErrPermission].
//
// The mode has permission bits only, and the umask does not count. The file belongs to this
// process. A link at path is replaced and not followed; hard links, extended attributes and times
// of the old file are not kept. Any number of goroutines and processes may write one file: the last
// one counts. A call waits for other writers up to 30 seconds; the error then names the temporary
// file that they hold. The cost is two fsyncs, also for equal content: what an earlier fsync failed
// to confirm is never confirmed by reading.
//
// The temporary file is beside the file: a killed process leaves it there, and the next call removes
// it. Its name begins with a dot and ends in ".tmp". A program that reads every file of a directory,
// as CRI-O does in crio.conf.d, reads it, too: see [FileSet].
//
// WriteFile does what it can on systems other than Linux. The promise holds on ext4, xfs and btrfs.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	check := option.For("checkpoint.WriteFile", nil)
	check.Require("path", path, "the file to write")
	err := check.Err()
	if err == nil && perm&^fs.ModePerm != 0 {
		err = errMode
	}
	if err == nil {
		err = durable.ReplaceFile(durable.OS{}, path, data, perm)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, durable.ErrUnconfirmed):
		return fmt.Errorf("writing %q: %w", path, indeterminate(err))
	}
	return fmt.Errorf("writing %q: %w", path, notWritten(err))
}

var errMode = errors.New("the mode must have permission bits only")

// ReadFile reads a state file that another program, or an earlier version of this one, wrote
// without care: a crash may have left it empty, cut short, or filled with zeros. Such a file is
// damage, and never absence and never an older state.
//
// whole says what a whole file is: it returns an error for content that is not one, such as that of
// a strict decoder. Choose a check that sees a missing end: every start of a YAML document is a
// YAML document. If whole is nil, only an empty file and one that ends in zeros are damage.
//
// Errors match [fs.ErrNotExist], [ErrCorrupt] (the error is a [CorruptError] with one Damage, whose
// Reason is empty, zeroed or content), [ErrTooLarge] (more than 4 MiB), or [ErrUntrusted] (not a
// regular file). With ErrCorrupt, what was read is returned, too, for people to look at. Links are
// followed. ReadFile changes nothing: to move a legacy file into a [Store], put what was read, and
// remove the file when Put returned nil.
func ReadFile(path string, whole func(content []byte) error) ([]byte, error) {
	check := option.For("checkpoint.ReadFile", nil)
	check.Require("path", path, "the file to read")
	var content []byte
	err := check.Err()
	if err == nil {
		content, err = readLegacy(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, err)
	}
	reason, err := judgeLegacy(content, whole)
	if reason == "" {
		return content, nil
	}
	return content, &CorruptError{Stream: path, Damage: []Damage{{Stream: path, Reason: reason, Err: err}}}
}

// judgeLegacy gives the reason why a file is not whole, or none.
func judgeLegacy(content []byte, whole func([]byte) error) (string, error) {
	if len(content) == 0 {
		return reasonEmpty, nil
	}
	var err error
	if whole != nil {
		if err = whole(content); err == nil {
			return "", nil
		}
	}
	switch {
	case content[len(content)-1] == 0:
		return reasonZeroed, err
	case err != nil:
		return reasonContent, err
	}
	return "", nil
}

// legacyTries bounds how often a file is read that changes meanwhile.
const legacyTries = 10

func readLegacy(path string) ([]byte, error) {
	for range legacyTries {
		content, err := readOnce(path)
		if err != nil {
			return nil, err
		}
		again, err := readOnce(path)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(content, again) {
			return content, nil
		}
	}
	return nil, fmt.Errorf("the file changed %d times while it was read", legacyTries)
}

func readOnce(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a regular file", ErrUntrusted)
	}
	content, err := io.ReadAll(io.LimitReader(f, defaultMaxPayload+1))
	if err == nil && len(content) > defaultMaxPayload {
		err = fmt.Errorf("%w: may have %d bytes", ErrTooLarge, defaultMaxPayload)
	}
	return content, err
}
