// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches a journal that is broken in any of these ways.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "any record is believed", File: "journal.go", Run: "FuzzJournal", Old: " || !r.sound()", New: ""},
		{Name: "what was compared is forgotten with the process", File: "journal.go", Run: "TestEdges", Old: "r.Seen = SeenIn(s, at)", New: "r.Seen = before"},
		{Name: "the journal grows for ever", File: "journal.go", Run: "TestJournalIsBounded", Old: "over > 0 {", New: "over > 1<<20 {"},
		{Name: "what is not on record is told", File: "journal.go", Run: "TestFailedWrite", Old: "err = j.store.Put(ctx, Stream, raw)\n\t\t}\n\t\tif err != nil {", New: "err = j.store.Put(ctx, Stream, raw)\n\t\t}\n\t\tif err != nil && len(raw) == 0 {"},
		{Name: "a later format is overwritten", File: "journal.go", Run: "TestJournalThat", Old: "if head.Format > format {", New: "if head.Format > 99 {"},
		{Name: "what was told is told again", File: "teller.go", Run: "TestTeller", Old: "if e.N <= r.Told {", New: "if e.N == 0 {"},
		{Name: "nothing is tried again", File: "teller.go", Run: "TestTeller", Old: "t.pause(ctx, wait)", New: "t.pause(ctx, 0)"},
		{Name: "a rollback is no edge", File: "edges.go", Run: "TestEdges", Old: "now.Active != before.Active && now.Active != now.Assigned", New: "now.Alarm && before.Alarm"},
		{Name: "a trial that does not end is told again and again", File: "edges.go", Run: "TestOverdue", Old: "now.Overdue && !before.Overdue", New: "now.Overdue"},
		{Name: "a trial may last for ever", File: "edges.go", Run: "TestOverdue", Old: "now.Overdue && !before.Overdue", New: "now.Overdue && before.Overdue"},
		{Name: "reasons have any length", File: "journal.go", Run: "TestJournalIsBounded", Old: "\te.Why = clip(e.Why)\n", New: ""},
	})
}
