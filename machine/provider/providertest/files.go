// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/belayproject/belay/internal/durable"
	"github.com/belayproject/belay/internal/strictjson"
)

// The directories of the state, and the ending of its files.
const (
	instanceDir = "instances"
	diskDir     = "disks"
	usedDir     = "used"
	groupDir    = "groups"
	ending      = ".json"
)

// files keeps JSON documents in the directories of the state. What was written is there after any crash, whole; what
// was being written is there or not.
type files struct {
	dir    string
	noSync bool
	// step is called before each operation; an error ends it there.
	step func() error
}

// make makes the directories, and what is in them durable.
func (f *files) make() error {
	for _, d := range []string{instanceDir, diskDir, usedDir, groupDir} {
		if err := os.MkdirAll(filepath.Join(f.dir, d), 0o700); err != nil {
			return err
		}
	}
	for _, d := range []string{".", instanceDir, diskDir, usedDir, groupDir} { // what a killed server has renamed is read from now on
		if err := f.sync(d); err != nil {
			return err
		}
	}
	return nil
}

// write replaces a file: a new one is written whole beside it, and takes its name.
func (f *files) write(dir, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return durable.ReplaceFile(stepping{files: f}, filepath.Join(f.dir, dir, name+ending), data, 0o600)
}

// stepping is the file system, with a step before each change.
type stepping struct {
	durable.OS
	files *files
}

// steppingFile is a file of one.
type steppingFile struct {
	durable.File
	files *files
}

func (s stepping) OpenFile(name string, flag int, perm fs.FileMode) (durable.File, error) {
	if err := s.files.step(); err != nil {
		return nil, err
	}
	file, err := s.OS.OpenFile(name, flag, perm)
	return steppingFile{file, s.files}, err
}

func (s stepping) Rename(from, to string) error {
	if err := s.files.step(); err != nil {
		return err
	}
	return s.OS.Rename(from, to)
}

func (s stepping) LeadsTo(name string, file durable.File) bool {
	return s.OS.LeadsTo(name, file.(steppingFile).File)
}

func (f steppingFile) Write(data []byte) (int, error) {
	if err := f.files.step(); err != nil {
		return 0, err
	}
	return f.File.Write(data)
}

func (f steppingFile) Sync() error {
	if err := f.files.step(); err != nil || f.files.noSync {
		return err
	}
	return f.File.Sync()
}

// remove removes a file, if it is there.
func (f *files) remove(dir, name string) error {
	if err := f.step(); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(f.dir, dir, name+ending)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.sync(dir)
}

// sync makes what was renamed and removed in a directory durable.
func (f *files) sync(dir string) error {
	return durable.SyncDir(stepping{files: f}, filepath.Join(f.dir, dir))
}

// read reads a file strictly.
func (f *files) read(dir, name string, into any) error {
	path := filepath.Join(f.dir, dir, name+ending)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := strictjson.Decode(data, into); err != nil {
		return fmt.Errorf("reading %q: %w", path, err)
	}
	return nil
}

// names lists the files of a directory. Those that were not finished are removed if clean is set, and not listed.
func (f *files) names(dir string, clean bool) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(f.dir, dir))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name, whole := strings.CutSuffix(e.Name(), ending)
		switch {
		case whole:
			names = append(names, name)
		case clean && durable.IsTemp(e.Name()):
			if err := os.Remove(filepath.Join(f.dir, dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	return names, nil
}
