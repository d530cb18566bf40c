// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxStateFile bounds what is read of a file, in bytes. A kubelet's state files have some hundred bytes for each pod.
const maxStateFile = 16 << 20

// A stateDisk is the file system below the kubelet's root directory. Names are relative to it.
type stateDisk interface {
	readFile(name string) ([]byte, error)
	hasFile(name string) (bool, error)
	findFiles(pattern string) ([]string, error)
	renameFile(from, to string) error
	makeDir(name string) error
	syncDir(name string) error
	writeFile(name string, text []byte) error
	removeFile(name string) error
	closeRoot() error
}

// A rootDisk is the real one. No name leads out of the directory, also through a symbolic link.
type rootDisk struct{ root *os.Root }

func (d rootDisk) readFile(name string) ([]byte, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxStateFile))
	return text, errors.Join(err, f.Close())
}

func (d rootDisk) hasFile(name string) (bool, error) {
	_, err := d.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (d rootDisk) findFiles(pattern string) ([]string, error) { return fs.Glob(d.root.FS(), pattern) }
func (d rootDisk) renameFile(from, to string) error           { return d.root.Rename(from, to) }
func (d rootDisk) makeDir(name string) error                  { return d.root.MkdirAll(name, 0o700) }
func (d rootDisk) removeFile(name string) error               { return d.root.Remove(name) }
func (d rootDisk) closeRoot() error                           { return d.root.Close() }

func (d rootDisk) syncDir(name string) error {
	f, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d rootDisk) writeFile(name string, text []byte) error {
	f, err := d.root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// A noDisk is a root directory that is not there yet.
type noDisk struct{}

func (noDisk) readFile(string) ([]byte, error)    { return nil, fs.ErrNotExist }
func (noDisk) hasFile(string) (bool, error)       { return false, nil }
func (noDisk) findFiles(string) ([]string, error) { return nil, nil }
func (noDisk) renameFile(string, string) error    { return fs.ErrNotExist }
func (noDisk) makeDir(string) error               { return nil }
func (noDisk) syncDir(string) error               { return fs.ErrNotExist }
func (noDisk) writeFile(string, []byte) error     { return fs.ErrNotExist }
func (noDisk) removeFile(string) error            { return fs.ErrNotExist }
func (noDisk) closeRoot() error                   { return nil }

// lookAtFiles reads the files of all bindings, and those places of their files that were moved aside and can return.
func lookAtFiles(d stateDisk, aside []asideFile) ([]lookAt, error) {
	var out []lookAt
	for _, b := range allBindings() {
		names, err := placesOf(d, b, aside)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := d.readFile(name)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				out = append(out, lookAt{binding: b, file: name})
			case err != nil: // it may be that of any config: the kubelet says what is wrong with it
				continue
			default:
				out = append(out, lookAt{binding: b, file: name, there: true, content: b.readContent(text)})
			}
		}
	}
	return out, nil
}

func placesOf(d stateDisk, b *binding, aside []asideFile) ([]string, error) {
	if !strings.Contains(b.file, "*") {
		return []string{b.file}, nil
	}
	names, err := d.findFiles(b.file)
	if err != nil {
		return nil, err
	}
	for _, a := range aside {
		if a.Binding != b.file || slices.Contains(names, a.File) {
			continue
		}
		if there, err := d.hasFile(path.Dir(a.File)); err == nil && there {
			names = append(names, a.File)
		}
	}
	return names, nil
}

// moveFiles does what is not done yet of a set of moves, in their order, and makes it durable. It never replaces a
// file.
func moveFiles(d stateDisk, moves []fileMove) error {
	if len(moves) == 0 {
		return nil
	}
	if err := d.makeDir(asideDir); err != nil {
		return fmt.Errorf("making the directory for the kubelet's state files: %w", err)
	}
	dirs := map[string]bool{".": true, asideDir: true}
	for _, m := range moves {
		done, err := isDone(d, m)
		if err == nil && !done {
			err = d.renameFile(m.From, m.To)
		}
		if err != nil {
			return fmt.Errorf("moving the kubelet's state file %s: %w", m, err)
		}
		dirs[path.Dir(m.From)], dirs[path.Dir(m.To)] = true, true
	}
	for dir := range dirs {
		if err := d.syncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("making moves of the kubelet's state files durable: %w", err)
		}
	}
	return nil
}

func isDone(d stateDisk, m fileMove) (bool, error) {
	from, err := d.hasFile(m.From)
	if err != nil || !from {
		return true, err
	}
	return d.hasFile(m.To)
}

// lastNumber returns the highest number among the files that lie aside, on record or not.
func lastNumber(d stateDisk) int {
	names, err := d.findFiles(asideDir + "/*")
	if err != nil {
		return 0
	}
	last := 0
	for _, name := range names {
		last = max(last, numberOf(name))
	}
	return last
}

func numberOf(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(path.Ext(name), "."))
	if err != nil {
		return 0
	}
	return n
}

// removeOld removes the oldest of the files aside that are not on record.
func removeOld(d stateDisk, aside []asideFile) error {
	names, err := d.findFiles(asideDir + "/*.*")
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(aside, func(a asideFile) bool { return a.Name == path.Base(name) })
	})
	slices.SortFunc(names, func(a, b string) int { return numberOf(a) - numberOf(b) })
	var all error
	for _, name := range names[:max(0, len(names)-keptAside)] {
		all = errors.Join(all, d.removeFile(name))
	}
	return all
}
