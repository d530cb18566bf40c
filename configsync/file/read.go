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
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/belayproject/belay/configsync"
)

// maxEntries bounds the files of a directory. A ConfigMap of the API server has fewer, or too little in each to matter.
const maxEntries = 1000

// tries is how often a directory that is being changed is read before it counts as unreachable.
const tries = 5

// errChanging means that the directory never stood still.
var errChanging = fmt.Errorf("it changes faster than it can be read: %w", configsync.ErrUnreachable)

// snapshot reads the entries of dir until two readings agree.
func snapshot(dir string) (map[string]string, error) {
	last, err := entries(dir)
	if err != nil {
		return nil, err
	}
	for range tries {
		again, err := entries(dir)
		if err != nil {
			return nil, err
		}
		if maps.Equal(last, again) {
			return again, nil
		}
		last = again
	}
	return nil, fmt.Errorf("reading directory %q: %w", dir, errChanging)
}

// entries reads each file of dir once.
func entries(dir string) (map[string]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, classified(dir, err)
	}
	defer func() { _ = root.Close() }() // opened for reading only
	d, err := root.Open(".")
	if err != nil {
		return nil, classified(dir, err)
	}
	names, err := d.Readdirnames(maxEntries + 1)
	_ = d.Close() // opened for reading only
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, classified(dir, err)
	}
	if len(names) > maxEntries {
		return nil, &configsync.InvalidError{Problem: fmt.Sprintf("directory %q has more than %d files", dir, maxEntries)}
	}
	data, left := map[string]string{}, configsync.MaxObject/2
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		text, err := entry(root, name, left)
		if err != nil {
			return nil, fmt.Errorf("reading directory %q: %w", dir, err)
		}
		data[name], left = text, left-len(text)
	}
	return data, nil
}

// entry reads one file of at most most bytes. A named pipe is not waited for.
func entry(root *os.Root, name string, most int) (string, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", classified(name, err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	info, err := f.Stat()
	if err != nil {
		return "", classified(name, err)
	}
	if !info.Mode().IsRegular() {
		return "", &configsync.InvalidError{Field: name, Problem: "must be a regular file"}
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return "", classified(name, err)
	}
	if len(text) > most {
		return "", &configsync.InvalidError{Field: name, Problem: fmt.Sprintf("the files hold more than %d bytes together", configsync.MaxObject/2)}
	}
	if !utf8.Valid(text) {
		return "", &configsync.InvalidError{Field: name, Problem: "must be UTF-8 text"}
	}
	return string(text), nil
}

// classified says what an error of the file system means for a config.
func classified(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("opening %q: %w: %w", name, configsync.ErrMissing, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("opening %q: %w: %w", name, configsync.ErrForbidden, err)
	default:
		return fmt.Errorf("opening %q: %w: %w", name, configsync.ErrUnreachable, err)
	}
}

// Init reads the init config from path: a directory of entries, or one file, which becomes the entry key. It is meant for
// Options.Init. The error is fs.ErrNotExist where path, or the entry key in the directory, does not exist.
func Init(path, key string) (configsync.Object, error) {
	info, err := os.Stat(path)
	if err != nil {
		return configsync.Object{}, fmt.Errorf("reading the init config: %w", err)
	}
	var data map[string]string
	if info.IsDir() {
		if data, err = snapshot(path); err == nil && data[key] == "" {
			err = fmt.Errorf("file %q in directory %q: %w", key, path, fs.ErrNotExist)
		}
	} else {
		data, err = single(path, key)
	}
	if err != nil {
		return configsync.Object{}, fmt.Errorf("reading the init config: %w", err)
	}
	return configsync.Object{Data: data}, nil
}

// single reads one file as the entry key.
func single(path, key string) (map[string]string, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // opened for reading only
	text, err := entry(root, filepath.Base(path), configsync.MaxObject/2)
	if err != nil {
		return nil, err
	}
	return map[string]string{key: text}, nil
}
