// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"testing"

	"github.com/belayproject/belay/rollout/v1alpha1"
)

// R-RO-29: the entry to go back to, if none is named, is one that would be taken; and a rollback to it is taken.
func TestEntryBefore(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(d *desk)
		want    string
	}{
		{"nothing was done yet", func(*desk) {}, "it has no history"},
		{"the last one", func(d *desk) { d.through("v1", "v2", "v3") }, "2 v2"},
		{"a fatal one is passed over", func(d *desk) { d.through("v1", "v2"); d.to("v3"); d.to("v4") }, "2 v2"},
		{"the same again after a fatal one", func(d *desk) { d.through("v1"); d.to("v2"); d.through("v1") }, "it was completed with nothing but what it is about now"},
		{"one that is gone is passed over", func(d *desk) { d.through("v1", "v2", "v3"); delete(d.at, "v2") }, "1 v1"},
		{"all are gone", func(d *desk) { d.through("v1", "v2"); delete(d.at, "v1") }, `revision.name of entry 1 is "v1", want the name of a Revision that there is`},
		{"there is no way back", func(d *desk) { d.through("v1", "v2"); d.r.Status.History[1].Irreversible = true },
			`entry 2, revision "v2", is irreversible and was begun: no node goes back from it`},
		{"not forth after a rollback", func(d *desk) { d.through("v1", "v2"); d.rollback("q", 1); d.run("v1") },
			"it has gone back to entry 1, and was completed with nothing else before that"},
		{"further back after a rollback", func(d *desk) { d.through("v1", "v2", "v3"); d.rollback("q", 2); d.run("v2") }, "1 v1"},
		{"as ever after the next one", func(d *desk) { d.through("v1", "v2"); d.rollback("q", 1); d.run("v1"); d.through("v3") }, "3 v1"},
	} {
		d := newDesk(t, "", "v1", "v2", "v3", "v4")
		c.prepare(d)
		entry, got := v1alpha1.EntryBefore(d.r, d.at.find)
		if entry != nil {
			got = fmt.Sprintf("%d %s", entry.Number, entry.Revision.Name)
			number, want := entry.Number, entry.Revision
			if s := d.rollback("back", number); s.Refusal != "" || *s.Revision != want {
				t.Errorf("%s: to go back to entry %d is refused with %q, and the revision is %v", c.name, number, s.Refusal, s.Revision)
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// through completes one revision after the other.
func (d *desk) through(names ...string) {
	d.t.Helper()
	for _, name := range names {
		d.to(name)
		d.run(name)
	}
}
