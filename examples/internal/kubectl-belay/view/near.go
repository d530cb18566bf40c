// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strings"
)

// most is how many names are called near at most.
const most = 5

// Near are the names that somebody may have meant, the nearest first.
func Near(name string, names []string) []string {
	type near struct {
		name     string
		distance int
	}
	var all []near
	for _, n := range names {
		d := distance(name, n)
		if name != "" && (strings.Contains(n, name) || strings.Contains(name, n)) {
			d = min(d, 1)
		}
		if d <= max(1, len(name)/4) {
			all = append(all, near{n, d})
		}
	}
	slices.SortFunc(all, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	var found []string
	for _, n := range all[:min(most, len(all))] {
		found = append(found, n.name)
	}
	return found
}

// distance is how many bytes have to be put in, taken out or changed.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
