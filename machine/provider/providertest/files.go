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

	"github.com/belayproject/belay/internal/strictjson"
)

// The directories of the state, and the endings of its files. A file that has the second one was not finished.
const (
	instanceDir = "instances"
	diskDir     = "disks"
	usedDir     = "used"
	groupDir    = "groups"
	ending      = ".json"
	unfinished  = ".new"
)

// files keeps JSON documents in the directories of the state. What was written is there after any crash, whole; what was being written is
// there or not.
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
	path := filepath.Join(f.dir, dir, name+ending)
	if err := f.writeNew(path+unfinished, data); err != nil {
		return err
	}
	if err := f.step(); err != nil {
		return err
	}
	if err := os.Rename(path+unfinished, path); err != nil {
		return err
	}
	return f.sync(dir)
}

func (f *files) writeNew(path string, data []byte) error {
	if err := f.step(); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = f.step()
	if err == nil {
		_, err = file.Write(data)
	}
	if err == nil {
		err = f.step()
	}
	if err == nil && !f.noSync {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
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
	if err := f.step(); err != nil || f.noSync {
		return err
	}
	d, err := os.Open(filepath.Join(f.dir, dir))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
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
		case clean && strings.HasSuffix(e.Name(), ending+unfinished):
			if err := os.Remove(filepath.Join(f.dir, dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	return names, nil
}
