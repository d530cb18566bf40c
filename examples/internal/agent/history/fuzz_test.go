// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"strings"
	"testing"

	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/examples/internal/agent/history"
)

// C-06: whatever is in the record, a journal goes on from it, within its bounds, with numbers that grow, or is begun anew; one of a later format is
// left as it is.
func FuzzJournal(f *testing.F) {
	for _, s := range []string{
		"", "null", "{}", `{"format":2}`, `{"format":1,"last":1,"entries":[{"n":1,"kind":"Started","at":"2026-01-01T00:00:00Z"}]}`,
		`{"format":1,"last":1,"entries":[{"n":7},{"n":3}]}`, `{"format":1,"last":18446744073709551615}`, `{"format":1,"told":9,"last":1}`,
		`{"format":1,"totals":[{"kind":"Started","count":18446744073709551615}]}`, `{"format":1,"last":1,"entries":[{"n":1,"why":"` + strings.Repeat("a", 2*history.MaxWhy) + `"}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		disk := &configsynctest.Disk{}
		if err := disk.Put(t.Context(), history.Stream, raw); err != nil {
			t.Fatal(err)
		}
		j, err := history.Open(t.Context(), disk, nil)
		if err != nil {
			if left, err := disk.Get(t.Context(), history.Stream); err != nil || string(left) != string(raw) {
				t.Fatalf("a journal that is not used was changed to %q (%v)", left, err)
			}
			return
		}
		for _, e := range []history.Entry{{Kind: history.Alarm, Why: "a"}, {Kind: history.Alarm, Why: "b"}} {
			if err := j.Add(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		bounded(t, disk)
	})
}

// bounded looks at a journal with two more entries.
func bounded(t *testing.T, disk *configsynctest.Disk) {
	t.Helper()
	entries, totals, err := history.Read(t.Context(), disk)
	if err != nil || len(entries) < 2 || len(entries) > history.MaxEntries {
		t.Fatalf("after two more there are %d entries (%v)", len(entries), err)
	}
	for i, e := range entries {
		if i > 0 && e.N <= entries[i-1].N || len(e.Why) > history.MaxWhy {
			t.Fatalf("entry %d has number %d and a reason of %d bytes", i, e.N, len(e.Why))
		}
	}
	seen := map[history.Total]bool{}
	for _, total := range totals {
		if total.Count = 0; seen[total] {
			t.Fatalf("the totals have %q twice", total.Kind)
		}
		seen[total] = true
	}
	if !seen[history.Total{Kind: history.Alarm}] {
		t.Fatal("the totals lack what was added")
	}
}
