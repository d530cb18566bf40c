// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/belayproject/belay/configsync"
)

// Init reads the init config from path: a directory of entries, or one file, which becomes the entry key. It is meant for
// Options.Init. The error is fs.ErrNotExist where path does not exist, or is a directory without entries: then a node has no init
// config. Anything else that is there and is no init config is another error, so that a misnamed, damaged or emptied file is never
// taken for none: an empty file is returned as an empty entry, for the codec to refuse.
func Init(path, key string) (configsync.Object, error) {
	data, err := initData(path, key)
	if err != nil {
		return configsync.Object{}, fmt.Errorf("reading the init config at %q: %w", path, err)
	}
	return configsync.Object{Data: data}, nil
}

func initData(path, key string) (map[string]string, error) {
	if _, err := os.Lstat(path); err != nil {
		return nil, err
	}
	// The path is the operator's, and may be a link to anywhere. One that leads nowhere is a mistake, not the lack of a config.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("following the link: %v", err) //nolint:errorlint // not wrapped: it must not count as absence
	}
	info, err := os.Stat(target)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return stable(func() (map[string]string, error) { return single(target, key) })
	}
	data, err := snapshot(target)
	if err != nil {
		return nil, err
	}
	_, ok := data[key]
	switch {
	case len(data) == 0:
		return nil, fmt.Errorf("the directory is empty: %w", fs.ErrNotExist)
	case !ok:
		return nil, fmt.Errorf("the directory has %d files, and none is named %q", len(data), key)
	}
	return data, nil
}

// single reads one file as the entry key.
func single(path, key string) (map[string]string, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // opened for reading only
	text, err := entry(root, filepath.Base(path), configsync.MaxData)
	if err != nil {
		return nil, err
	}
	return map[string]string{key: text}, nil
}
