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
		// Papers that the repository does not have: a reader is told the thought, and no number of it.
		{in: with(" ", "threat", "model"), pattern: `(?i)\b` + with(" ", "threat", "model") + `\b`},
		{in: with(" ", "b", "row", ""), pattern: `\bB ` + `row [0-9]`},
		{in: with("", "fa", "ct"), pattern: "Fa" + `cts? [0-9]`},
		{in: with("", "se", "ed 0"), pattern: `\bse` + `ed 0[0-9][0-9]\b`},
		{in: with("", "lesson", ""), pattern: `\blessons? [A-Z][0-9]`},
		{in: with("", "des", "ign d"), pattern: `\bDES` + `IGN D[0-9]`},
	}
	for _, before := range []string{"// ", ": ", ", ", "(", "# "} { // a literal, with which a search is quick
		words = append(words, word{in: before + "d", pattern: regexp.QuoteMeta(before) + `D[0-9]{1,2}[,:;.)]`, numbered: true})
	}
	for _, letter := range []string{"C", "M"} {
		words = append(words, word{in: "// " + strings.ToLower(letter), pattern: "// " + letter + `[0-9]{1,2}[,:]`})
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
	// numbered: the rows of a table that is in the docs have such numbers, and the files that are named there may speak of them.
	numbered bool
	*regexp.Regexp
}

// rows are the files that may name the rows of docs/checkpoint.md.
var rows = regexp.MustCompile(`^(?:checkpoint/|internal/faultproof/|docs/(?:checkpoint|faults)\.md$|CHANGELOG\.md$)`)

// Words checks that no file names the machine it was written on, or anything else that is not the project's own.
func Words(t *Tree) []Violation {
	words := forbidden()
	var vs []Violation
	for _, f := range slices.Concat(t.Files, t.Data) {
		lower := bytes.ToLower(f.Text)
		for _, w := range words {
			if bytes.Contains(lower, []byte(w.in)) && !(w.numbered && rows.MatchString(f.Path)) {
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
