// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/belayproject/belay/configsync"
)

// tries is how often a directory that is being changed is read before it counts as unreachable.
const tries = 6

// projection is the link by which a mounted ConfigMap switches from one version to the next.
const projection = "..data"

// errChanging means that a reading saw a part of a change.
var errChanging = errors.New("it changes while it is read, or holds a link that leads nowhere")

// snapshot reads the entries of dir until two readings agree.
func snapshot(dir string) (map[string]string, error) {
	return stable(func() (map[string]string, error) { return entries(dir) })
}

// stable calls read until two readings, one after the other, agree.
func stable(read func() (map[string]string, error)) (map[string]string, error) {
	var last map[string]string
	for range tries {
		now, err := read()
		switch {
		case errors.Is(err, errChanging):
			last = nil
		case err != nil:
			return nil, err
		case last != nil && maps.Equal(last, now):
			return now, nil
		default:
			last = now
		}
	}
	return nil, fmt.Errorf("%w: %w", configsync.ErrUnreachable, errChanging)
}

// entries reads each file of dir once. In a mounted ConfigMap it reads the version that the link names; if that was replaced
// meanwhile, its files may have been on their way out.
func entries(dir string) (map[string]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, classified(err)
	}
	defer func() { _ = root.Close() }() // opened for reading only
	before, err := root.Readlink(projection)
	if err != nil {
		return files(root)
	}
	version, err := root.OpenRoot(projection)
	if err != nil {
		return nil, linkError(projection, err)
	}
	defer func() { _ = version.Close() }() // opened for reading only
	data, err := files(version)
	if after, linkErr := root.Readlink(projection); linkErr != nil || after != before {
		return nil, errChanging
	}
	return data, err
}

// files reads each file of an open directory once.
func files(root *os.Root) (map[string]string, error) {
	names, err := list(root)
	if err != nil {
		return nil, err
	}
	data, left := map[string]string{}, configsync.MaxData
	for _, name := range names {
		text, err := entry(root, name, left-len(name))
		if err != nil {
			return nil, err
		}
		data[name], left = text, left-len(name)-len(text)
	}
	return data, nil
}

// list gives the names of the entries. Each can be a key.
func list(root *os.Root) ([]string, error) {
	d, err := root.Open(".")
	if err != nil {
		return nil, linkError(".", err)
	}
	defer func() { _ = d.Close() }() // opened for reading only
	names, err := d.Readdirnames(2 * configsync.MaxKeys)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, linkError(".", err)
	}
	var keys []string
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		if err := (configsync.Spec{Namespace: namespace, Name: objectName, Key: name}).Validate(); err != nil {
			return nil, &configsync.InvalidError{Field: fmt.Sprintf("file %.64q", name), Problem: "its name must be a key that a ConfigMap can have"}
		}
		keys = append(keys, name)
	}
	if len(keys) > configsync.MaxKeys || len(names) == 2*configsync.MaxKeys {
		return nil, &configsync.InvalidError{Problem: fmt.Sprintf("the directory must not have more than %d files", configsync.MaxKeys)}
	}
	return keys, nil
}

// entry reads one file of at most most bytes. It opens nothing but regular files, and doesn't wait for a pipe that took the place of
// one in between.
func entry(root *os.Root, name string, most int) (string, error) {
	invalid := func(problem string) error {
		return &configsync.InvalidError{Field: fmt.Sprintf("file %q", name), Problem: problem}
	}
	before, err := root.Stat(name)
	if err != nil {
		return "", linkError(name, err)
	}
	if !before.Mode().IsRegular() {
		return "", invalid("must be a regular file")
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", linkError(name, err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) {
		return "", errChanging
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(max(most, 0))+1))
	switch {
	case err != nil:
		return "", classified(err)
	case len(text) > most:
		return "", invalid(fmt.Sprintf("with it, names and contents have more than %d bytes together", configsync.MaxData))
	case !utf8.Valid(text):
		return "", invalid("must be UTF-8 text")
	}
	return string(text), nil
}

// linkError is what it means that a name which was there can't be opened.
func linkError(name string, err error) error {
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errChanging
	case errors.As(err, &errno) && errno != syscall.ELOOP:
		return classified(err)
	}
	return &configsync.InvalidError{Field: fmt.Sprintf("file %q", name), Problem: "must not be a link that leads out of the directory or to itself"}
}

// classified says what an error of the file system means for a config.
func classified(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", configsync.ErrMissing, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", configsync.ErrForbidden, err)
	default:
		return fmt.Errorf("%w: %w", configsync.ErrUnreachable, err)
	}
}
