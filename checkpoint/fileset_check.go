// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	fileNameMax = 255
	// tempMark is in the name of every temporary file that this package makes beside a file of
	// others.
	tempMark = ".belay-"
	newEnd   = ".new"
	oldEnd   = ".old"
)

// checkFiles refuses what can be seen to be wrong before anything is opened. All problems are told
// at once.
func checkFiles(files []File, limit int64) error {
	var errs []error
	seen := map[string]bool{}
	for i := range files {
		f := &files[i]
		problem := f.problem(limit)
		if problem == nil && seen[f.Path] {
			problem = errors.New("is twice in the set")
		}
		if problem != nil {
			errs = append(errs, fmt.Errorf("file %s: %w", quoted(f.Path), problem))
		}
		seen[f.Path] = true
	}
	return errors.Join(errs...)
}

func (f *File) problem(limit int64) error {
	base := filepath.Base(f.Path)
	_, _, err := f.owner()
	switch {
	case err != nil:
		return err
	case !filepath.IsAbs(f.Path) || filepath.Clean(f.Path) != f.Path || base == string(filepath.Separator):
		return errors.New("must be an absolute path without . and .. that names a file")
	case strings.ContainsRune(f.Path, 0):
		return errors.New("must not contain a zero byte")
	case len(base) > fileNameMax:
		return fmt.Errorf("the name has %d bytes, may have %d", len(base), fileNameMax)
	case strings.HasPrefix(base, ".") && strings.Contains(base, tempMark):
		return fmt.Errorf("names with %q are those of temporary files", tempMark)
	case f.Mode&^fs.ModePerm != 0:
		return fmt.Errorf("mode %v: permission bits only", f.Mode)
	case f.Absent && (f.Mode != 0 || f.Owner != "" || len(f.Content) > 0):
		return errors.New("an absent file has no mode, owner or content")
	case int64(len(f.Content)) > limit:
		return fmt.Errorf("%w: %d bytes, may have %d", ErrTooLarge, len(f.Content), limit)
	}
	return nil
}

// owner gives the user and the group, if they are given.
func (f *File) owner() (uid, gid uint32, err error) {
	if f.Owner == "" {
		return 0, 0, nil
	}
	user, group, _ := strings.Cut(f.Owner, ":")
	u, err := strconv.ParseUint(user, 10, 31)
	if err == nil {
		var g uint64
		if g, err = strconv.ParseUint(group, 10, 31); err == nil {
			return uint32(u), uint32(g), nil
		}
	}
	return 0, 0, fmt.Errorf("owner %s: want a user and a group by number, such as 0:0", quoted(f.Owner))
}

// locate finds where the files really lie. It refuses a file that is there twice, or below another
// one, or in the journal, and a path on which every user could put another directory in the place
// of one.
func (s *FileSet) locate(files []File) ([]target, error) {
	home, err := s.sys.resolve(s.dir)
	if err != nil {
		return nil, err
	}
	targets := make([]target, 0, len(files))
	places := map[string]bool{}
	for _, f := range files {
		t := target{File: f, name: filepath.Base(f.Path)}
		if t.dir, err = resolveDir(s.sys, filepath.Dir(f.Path)); err != nil {
			return nil, fmt.Errorf("file %s: %w", quoted(f.Path), err)
		}
		if places[t.place()] {
			return nil, fmt.Errorf("file %s: is twice in the set, under another name", quoted(f.Path))
		}
		if t.dir == home || strings.HasPrefix(t.dir, home+"/") {
			return nil, fmt.Errorf("file %s: %w: is in the directory of the journal", quoted(f.Path), ErrUntrusted)
		}
		places[t.place()] = true
		targets = append(targets, t)
	}
	for _, t := range targets {
		for at := t.dir; at != filepath.Dir(at); at = filepath.Dir(at) {
			if places[at] {
				return nil, fmt.Errorf("file %s: another file of the set is above it", quoted(t.Path))
			}
		}
	}
	return targets, nil
}

// resolveDir gives a directory's path without links. What is missing of it has none.
func resolveDir(sys fsys, dir string) (string, error) {
	at, missing := dir, ""
	for {
		info, err := sys.statPath(at)
		if err == nil && !info.dir {
			return "", fmt.Errorf("%q is not a directory", at)
		}
		if err == nil {
			break
		}
		if !isGone(err) || at == filepath.Dir(at) {
			return "", err
		}
		missing = filepath.Join(filepath.Base(at), missing)
		at = filepath.Dir(at)
	}
	if err := checkParents(sys, at, missing != ""); err != nil {
		return "", err
	}
	real, err := sys.resolve(at)
	return filepath.Join(real, missing), err
}

// tempName is the name of the new or the old content of a file, beside it, until the set is whole
// or undone. Two sets have different ones.
func tempName(journal, name, end string) string {
	const room = 200
	sum := sha256.Sum256([]byte(journal + "\n" + name))
	return "." + name[:min(len(name), room)] + tempMark + hex.EncodeToString(sum[:8]) + end
}
