// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	_ "embed"
	"strings"
)

// equivalentList has a line for each mutant that behaves as the source does: package, function, operator, expression and
// reason, separated by tabs. An expression is given as source text; space does not count. With is not compared.
//
//go:embed equivalent.tsv
var equivalentList string

// An equivalent is a mutant that no test can kill.
type equivalent struct{ pkg, function, operator, expr, why string }

type equivalentSet []equivalent

func equivalents() equivalentSet {
	var set equivalentSet
	for line := range strings.Lines(equivalentList) {
		if f := strings.Split(strings.TrimRight(line, "\n"), "\t"); len(f) == 5 {
			set = append(set, equivalent{f[0], f[1], f[2], f[3], f[4]})
		}
	}
	return set
}

// reason returns why a mutant of a package is equivalent, or nothing if it is not known to be.
func (s equivalentSet) reason(pkg string, m mutant) string {
	for _, e := range s {
		if pkg == modulePath+e.pkg && m.function == e.function && m.operator == e.operator && m.expr == canonical(e.expr) {
			return e.why
		}
	}
	return ""
}

const modulePath = "github.com/belayproject/belay/"
