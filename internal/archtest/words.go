// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// forbidden gives the patterns that no file of the project may hold. They are put together here so that this file does not
// hold them either.
func forbidden() []*regexp.Regexp {
	edge := `(?:^|[^[:word:].$})-])`
	patterns := []string{
		edge + strings.Join([]string{"", "work", `(?:wt|main|shared|\.)`}, "/"),
		edge + strings.Join([]string{"", "root", `\.?[[:word:]]`}, "/"),
		edge + strings.Join([]string{"", "home", `[[:word:]]`}, "/"),
		strings.Join([]string{`\.\.`, "shared"}, "/"),
		strings.Join([]string{`\.`, "library/"}, ""),
		strings.Join([]string{"proxy", "golang", "org"}, `\.`),
		strings.Join([]string{"sum", "golang", "org"}, `\.`),
		strings.Join([]string{"deb", "debian", "org"}, `\.`),
		strings.Join([]string{"registry", "npmjs"}, `\.`),
		`(?i)\b` + "assist" + `ants?\b`,
		`(?i)\b` + "clau" + `de\b`,
		`(?i)\b` + "language" + ` model`,
	}
	compiled := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		compiled[i] = regexp.MustCompile(p)
	}
	return compiled
}

// Words checks that no file names the machine it was written on, or anything else that is not the project's own.
func Words(t *Tree) []Violation {
	patterns := forbidden()
	var vs []Violation
	for _, f := range slices.Concat(t.Files, t.Data) {
		for i, line := range bytes.Split(f.Text, []byte("\n")) {
			for _, p := range patterns {
				if m := p.Find(line); m != nil {
					vs = append(vs, Violation{fmt.Sprintf("%s:%d", f.Path, i+1), fmt.Sprintf("holds %q", m), whyWords})
				}
			}
		}
	}
	return vs
}
