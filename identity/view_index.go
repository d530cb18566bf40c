// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// An index finds records by values that functions find in their Leases.
type index struct {
	by   map[string]func(*coordinationv1.Lease) []string
	sets map[indexed]map[*record]bool
}

// indexed is a value under which an index finds something.
type indexed struct{ name, value string }

func newIndex(by map[string]func(*coordinationv1.Lease) []string) *index {
	return &index{by: by, sets: map[indexed]map[*record]bool{}}
}

// update has r found by what lease says, no longer by what old says. Either may be nil.
func (x *index) update(r *record, old, lease *coordinationv1.Lease) {
	for name, values := range x.by {
		var were, are []string
		if old != nil {
			were = values(old)
		}
		if lease != nil {
			are = values(lease)
		}
		for _, value := range were {
			if !slices.Contains(are, value) {
				x.remove(indexed{name, value}, r)
			}
		}
		for _, value := range are {
			x.add(indexed{name, value}, r)
		}
	}
}

func (x *index) add(at indexed, r *record) {
	set := x.sets[at]
	if set == nil {
		set = map[*record]bool{}
		x.sets[at] = set
	}
	set[r] = true
}

func (x *index) remove(at indexed, r *record) {
	delete(x.sets[at], r)
	if len(x.sets[at]) == 0 {
		delete(x.sets, at)
	}
}
