// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	fileNameMax = 255
	// tempMark is in the name of every temporary file that this package makes beside a file of others.
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
		problem := f.findProblem(limit)
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

func (f *File) findProblem(limit int64) error {
	base := filepath.Base(f.Path)
	_, _, err := f.parseOwner()
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

// parseOwner gives the user and the group, if they are given.
func (f *File) parseOwner() (uid, gid uint32, err error) {
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

// locateFiles finds where the files really lie. It refuses a file that is there twice, or below another
// one, or in the journal, and a path on which every user could put another directory in the place
// of one.
func (s *FileSet) locateFiles(files []File) ([]target, error) {
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
		if places[t.realPath()] {
			return nil, fmt.Errorf("file %s: is twice in the set, under another name", quoted(f.Path))
		}
		if t.dir == home || strings.HasPrefix(t.dir, home+"/") {
			return nil, fmt.Errorf("file %s: %w: is in the directory of the journal", quoted(f.Path), ErrUntrusted)
		}
		places[t.realPath()] = true
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

// journalStream is the only stream in the directory of a FileSet. Its newest record says what the
// last Apply was about, and how far it came.
const journalStream = "files"

const journalVersion = 1

// phase is how far an Apply came. Only files of one that is applying are ever restored.
type phase string

const (
	phaseApplying phase = "applying" // files may be old or new
	phaseApplied  phase = "applied"  // all files are new
	phaseUndone   phase = "undone"   // all files are old
)

// journal is the record.
type journal struct {
	Version int    `json:"version"`
	Phase   phase  `json:"phase"`
	Tag     string `json:"tag"` // is in the names of the temporary files
	// Doubtful says that an fsync failed while files were restored: what a directory shows may not be what is on the disk.
	Doubtful bool     `json:"doubtful,omitempty"`
	Made     []string `json:"made,omitempty"` // directories that were missing, upper ones first
	Files    []change `json:"files"`
}

// change is what an Apply does to one file.
type change struct {
	Dir string `json:"dir"` // without links
	// Inode is that of the directory or, where it was missing, of the nearest one above it.
	Inode uint64    `json:"inode,omitempty"`
	Name  string    `json:"name"`
	Old   fileState `json:"old"`
	New   fileState `json:"new"`
}

// fileState says all that recovery compares of a file.
type fileState struct {
	Present bool   `json:"present"`
	Digest  string `json:"digest,omitempty"`
	Mode    uint32 `json:"mode,omitempty"`
	UID     uint32 `json:"uid,omitempty"`
	GID     uint32 `json:"gid,omitempty"`
}

// readJournal returns nil where there is nothing to recover from: no record, or damage. The Store
// has told OnDamage of that.
func readJournal(ctx context.Context, store *Store) (*journal, error) {
	rec, err := store.Read(ctx, journalStream)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrCorrupt):
		return nil, nil
	case err != nil:
		return nil, err
	case len(rec.Damage) > 0: // the record of another Apply than the last one, or of an earlier phase
		return nil, nil
	}
	var j journal
	if err := json.Unmarshal(rec.Payload, &j); err != nil {
		return nil, fmt.Errorf("the journal: %w", err)
	}
	if j.Version != journalVersion {
		return nil, fmt.Errorf("the journal: %w: version %d", ErrTooNew, j.Version)
	}
	return &j, nil
}

// putJournal stores it. It is not cut off half-way by a context: what is on the disk and what is in it have to agree.
func (j *journal) putJournal(ctx context.Context, store *Store) error {
	payload, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return store.Put(context.WithoutCancel(ctx), journalStream, payload)
}
