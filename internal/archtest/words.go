// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// forbidden gives the patterns that no file of the project may hold. They are put together here so that this file does not
// hold them either.
func forbidden() []word {
	edge := `(?:^|[^[:word:].$})-])`
	with := func(sep string, parts ...string) string { return strings.Join(parts, sep) }
	words := []word{
		{in: with("/", "", "work", ""), pattern: edge + with("/", "", "work", `(?:wt|main|shared|\.)`)},
		{in: with("/", "", "root", ""), pattern: edge + with("/", "", "root", `\.?[[:word:]]`)},
		{in: with("/", "", "home", ""), pattern: edge + with("/", "", "home", `[[:word:]]`)},
		{in: with("/", "..", "shared")},
		{in: with("", ".", "library/")},
		{in: with(".", "proxy", "golang", "org")},
		{in: with(".", "sum", "golang", "org")},
		{in: with(".", "deb", "debian", "org")},
		{in: with(".", "registry", "npmjs")},
		{in: with("", "assist", "ant"), pattern: `(?i)\b` + "assist" + `ants?\b`},
		{in: with("", "clau", "de"), pattern: `(?i)\b` + "clau" + `de\b`},
		{in: with("", "language", " model"), pattern: `(?i)\b` + "language" + ` model`},
	}
	for i, w := range words {
		words[i].Regexp = regexp.MustCompile(cmp.Or(w.pattern, regexp.QuoteMeta(w.in)))
	}
	return words
}

// A word is what no file may hold.
type word struct {
	in      string // each match has this in it, in letters of any case: most files are read no further
	pattern string // nothing: in itself
	*regexp.Regexp
}

// Words checks that no file names the machine it was written on, or anything else that is not the project's own.
func Words(t *Tree) []Violation {
	words := forbidden()
	var vs []Violation
	for _, f := range slices.Concat(t.Files, t.Data) {
		lower := bytes.ToLower(f.Text)
		for _, w := range words {
			if bytes.Contains(lower, []byte(w.in)) {
				vs = append(vs, w.find(f)...)
			}
		}
	}
	return vs
}

// find looks for a word line by line.
func (w word) find(f *File) (vs []Violation) {
	for i, line := range bytes.Split(f.Text, []byte("\n")) {
		if m := w.Find(line); m != nil {
			vs = append(vs, Violation{fmt.Sprintf("%s:%d", f.Path, i+1), fmt.Sprintf("holds %q", m), whyWords})
		}
	}
	return vs
}
