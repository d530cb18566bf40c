// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Each deliberately broken store is caught, by the case for the promise that it breaks, with the rule in the failure.
func TestSuiteCatchesBrokenStores(t *testing.T) {
	used := map[string]bool{}
	for _, b := range breakages() {
		t.Run(b.name, func(t *testing.T) {
			used[b.caught] = true
			i := slices.IndexFunc(cases(), func(r rule) bool { return r.name == b.caught })
			if i < 0 {
				t.Fatalf("there is no case %q", b.caught)
			}
			r := cases()[i]
			failure := failureOf(t, r, func(testing.TB) Store {
				b.store.Reopen()
				if b.store.reopen != nil {
					b.store.reopen(b.store)
				}
				return b.store
			})
			if failure == "" {
				t.Fatalf("case %q did not see it", b.caught)
			}
			if !strings.Contains(failure, r.text) {
				t.Fatalf("the failure does not name the rule: %s", failure)
			}
			t.Log(failure)
		})
	}
	for _, r := range cases() {
		if !used[r.name] {
			t.Errorf("no broken store shows that case %q can fail", r.name)
		}
	}
}

// recorder stands in for the test of a case, and keeps its failure.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	panic(r)
}

func failureOf(t *testing.T, r rule, place Place) string {
	rec := &recorder{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(rec) {
				panic(p)
			}
		}()
		r.check(rec, place)
	}()
	return rec.failure
}
