// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package apilist

import (
	"cmp"
	"errors"
	"fmt"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/belayproject/belay/internal/archtest"
)

const (
	// Dir holds the listings, and [LimitsFile], inside the repository.
	Dir = "docs/api"
	// LimitsFile is the ratchet: a package and the number of its exported names a line.
	LimitsFile = Dir + "/limits.txt"
)

const whyListing = "VERSIONING.md promises which changes of the API a release may make: each one is reviewed as a diff of " + Dir +
	". To accept this one, run make api and commit what it writes; to remove or change a name, follow the steps for a deprecation there"

const whyLimit = "a smaller API wins ties: the number of exported names of a package may only shrink. Unexport or remove a name of the " +
	"package for each new one; where a new capability needs more, raise its line in " + LimitsFile + " by hand and say why in the commit"

// A Listing holds the committed files below [Dir]: the text of each, by its path inside the repository.
type Listing map[string]string

// List gives what the listings of these packages should be. It takes the limits of old and lowers those that are too high; it
// gives a package without limit the number of its names, and raises none.
func List(pkgs map[string]*types.Package, old Listing) (Listing, error) {
	limits, err := parseLimits(old[LimitsFile])
	if err != nil {
		return nil, err
	}
	next, lines := Listing{}, []string{}
	total := 0
	for _, rel := range slices.Sorted(maps.Keys(pkgs)) {
		next[fileOf(rel)] = strings.Join(Lines(pkgs[rel]), "\n") + "\n"
		if archtest.IsKit(rel) || archtest.IsVersioned(rel) {
			continue
		}
		limit := Count(pkgs[rel])
		if l, ok := limits[rel]; ok {
			limit = min(l, limit)
		}
		total += limit
		lines = append(lines, fmt.Sprintf("%s %d\n", rel, limit))
	}
	lines = append(lines, fmt.Sprintf("total %d\n", total))
	next[LimitsFile] = strings.Join(lines, "")
	return next, nil
}

// Compare gives what is wrong with the committed listings of these packages.
func Compare(pkgs map[string]*types.Package, committed Listing) ([]archtest.Violation, error) {
	want, err := List(pkgs, committed)
	if err != nil {
		return nil, err
	}
	limits, err := parseLimits(committed[LimitsFile])
	if err != nil {
		return nil, err
	}
	var vs []archtest.Violation
	for _, file := range slices.Sorted(maps.Keys(committed)) {
		if _, ok := want[file]; !ok {
			vs = append(vs, archtest.Violation{Where: file, What: "lists a package that is gone", Why: whyListing})
		}
	}
	for _, file := range slices.Sorted(maps.Keys(want)) {
		if diff := diffLines(committed[file], want[file]); diff != "" {
			vs = append(vs, archtest.Violation{Where: file, What: "is not what the package exports:\n" + diff, Why: whyListing})
		}
	}
	for _, rel := range slices.Sorted(maps.Keys(limits)) {
		if p := pkgs[rel]; p != nil && Count(p) > limits[rel] {
			what := fmt.Sprintf("exports %d names, at most %d", Count(p), limits[rel])
			vs = append(vs, archtest.Violation{Where: rel, What: what, Why: whyLimit})
		}
	}
	return vs, nil
}

// Read gives the listings below root.
func Read(root string) (Listing, error) {
	l := Listing{}
	fsys := os.DirFS(root)
	err := fs.WalkDir(fsys, Dir, func(file string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || path.Ext(file) != ".txt" {
			return err
		}
		text, err := fs.ReadFile(fsys, file)
		l[file] = string(text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the listings: %w", err)
	}
	return l, nil
}

// Write makes the files below root those of next: it writes what differs, and removes what next does not hold.
func Write(root string, next Listing) error {
	old, err := Read(root)
	if err != nil {
		return err
	}
	for file := range old {
		if _, ok := next[file]; !ok {
			if err := os.Remove(filepath.Join(root, file)); err != nil {
				return fmt.Errorf("removing a listing: %w", err)
			}
		}
	}
	for file, text := range next {
		if old[file] == text {
			continue
		}
		name := filepath.Join(root, file)
		if err := cmp.Or(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			return fmt.Errorf("writing a listing: %w", err)
		}
	}
	return nil
}

func fileOf(rel string) string { return Dir + "/" + rel + ".txt" }

func parseLimits(text string) (map[string]int, error) {
	limits := map[string]int{}
	for line := range strings.Lines(text) {
		rel, number, ok := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			return nil, fmt.Errorf("reading %s: line %q is not a package and a number", LimitsFile, strings.TrimSpace(line))
		}
		limits[rel] = n
	}
	delete(limits, "total")
	return limits, nil
}

// diffLines gives the lines that only one of two sorted texts has, with - and + before them.
func diffLines(old, next string) string {
	was, is := strings.Split(old, "\n"), strings.Split(next, "\n")
	var lines []string
	for _, l := range was {
		if l != "" && !slices.Contains(is, l) {
			lines = append(lines, "\t- "+l)
		}
	}
	for _, l := range is {
		if l != "" && !slices.Contains(was, l) {
			lines = append(lines, "\t+ "+l)
		}
	}
	return strings.Join(lines, "\n")
}
