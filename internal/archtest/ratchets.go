// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// RatchetsFile is the table of the figures that may only shrink, inside the repository.
const RatchetsFile = "internal/archtest/ratchets.txt"

// A ratchet is a figure of a package: how many places are over a limit of the design, or away from the language of the project.
type ratchet struct {
	name string
	why  string
	// count measures the files of one directory.
	count func(files []*File) int
}

var ratchets = []ratchet{
	{"methods", "a type has at most 25 methods: a reader holds no larger one in his head, and its parts share state unseen", methodsOver},
	{"fields", "a struct has at most 12 fields: beyond that it is several values in one", fieldsOver},
	{"files", "a package has at most 20 files without its tests: it is read in one sitting", filesOver},
	{"one-word", "a function is a verb with an object; one word is for what the standard library or client-go calls so", oneWordNames},
	{"odd-words", "a sentence names its actor: the controller, the agent, the user, the API server", oddWords},
	{"long-lines", "a line has at most 120 columns, so that two files fit beside each other and a diff is read", longLines},
}

// allRatchets are the ratchets of a directory's size and language, and those of the shared rooms.
func allRatchets() []ratchet { return append(slices.Clone(ratchets), roomRatchets()...) }

// Figures are the ratchets of one directory by name. A ratchet that is not there is zero.
type Figures map[string]int

// Measure gives the figures of each directory of the tree that has one. Generated files are left out.
func Measure(t *Tree) map[string]Figures {
	dirs := map[string][]*File{}
	for _, f := range t.Files {
		if (f.isGo() || path.Ext(f.Path) == ".md") && !f.isGenerated() {
			dirs[f.Dir()] = append(dirs[f.Dir()], f)
		}
	}
	all := map[string]Figures{}
	for dir, files := range dirs {
		figures := Figures{}
		for _, r := range allRatchets() {
			if n := r.count(files); n > 0 {
				figures[r.name] = n
			}
		}
		if len(figures) > 0 {
			all[dir] = figures
		}
	}
	return all
}

// ParseFigures reads the table: a line has a directory, and name=number for each figure. Everything from a # on is a comment.
func ParseFigures(text []byte) (map[string]Figures, error) {
	all := map[string]Figures{}
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		figures := Figures{}
		for _, f := range fields[1:] {
			name, number, _ := strings.Cut(f, "=")
			n, err := strconv.Atoi(number)
			known := slices.ContainsFunc(allRatchets(), func(r ratchet) bool { return r.name == name })
			if err != nil || !known || n <= 0 {
				return nil, fmt.Errorf("%s:%d: %q is no figure", RatchetsFile, i+1, f)
			}
			figures[name] = n
		}
		all[fields[0]] = figures
	}
	return all, nil
}

const figuresHead = `# Copyright The belay Authors.
# SPDX-License-Identifier: Apache-2.0

# What is over the limits of the design, by directory: it may only shrink. make ratchets lowers what has shrunk, and raises nothing.
# methods: methods of types beyond 25 each; fields: fields of structs beyond 12 each; files: files beyond 20, without tests;
# one-word: functions whose name is one word; odd-words: see oddWord in ratchets_count.go; long-lines: lines over 120 columns.
# own-decoder, own-group, own-watch, own-backoff, own-poll: what a shared room does, done elsewhere, see oneway.go.
`

// FormatFigures writes the table that [ParseFigures] reads.
func FormatFigures(all map[string]Figures) []byte {
	var b strings.Builder
	b.WriteString(figuresHead)
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		line := ""
		for _, r := range allRatchets() {
			if n := all[dir][r.name]; n > 0 {
				line += fmt.Sprintf(" %s=%d", r.name, n)
			}
		}
		if line != "" {
			b.WriteString(dir + line + "\n")
		}
	}
	return []byte(b.String())
}

// LowerFigures gives the table for figures that have shrunk. No figure of it is larger than before.
func LowerFigures(have, limits map[string]Figures) map[string]Figures {
	lowered := map[string]Figures{}
	for dir, figures := range limits {
		lowered[dir] = Figures{}
		for name, limit := range figures {
			lowered[dir][name] = min(limit, have[dir][name])
		}
	}
	return lowered
}

// RatchetsHold checks that no figure has grown, and that the table has each as it is.
func RatchetsHold(have, limits map[string]Figures) []Violation {
	dirs := slices.Concat(slices.Collect(maps.Keys(have)), slices.Collect(maps.Keys(limits)))
	slices.Sort(dirs)
	var vs []Violation
	for _, dir := range slices.Compact(dirs) {
		for _, r := range allRatchets() {
			switch n, limit := have[dir][r.name], limits[dir][r.name]; {
			case n > limit:
				vs = append(vs, Violation{dir, fmt.Sprintf("%s: %d, at most %d", r.name, n, limit), r.why})
			case n < limit:
				what := fmt.Sprintf("%s: %d, and %s still allows %d: run make ratchets", r.name, n, RatchetsFile, limit)
				vs = append(vs, Violation{dir, what, "what has shrunk must not grow again"})
			}
		}
	}
	return vs
}
