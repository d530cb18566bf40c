// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/examples/internal/agent/history"
)

func want() []string {
	return []string{"Started a", "Adopted b", "Started b", "Rejected b Invalid", "Started a", "RolledBack a Invalid", "Stuck b", "Freed b"}
}

func spelled(entries []history.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Kind, e.Config.Name, e.Class)))
	}
	return out
}

func open(t *testing.T, store history.Store) *history.Journal {
	t.Helper()
	j, err := history.Open(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func report(t *testing.T, j *history.Journal, s configsync.Status) {
	t.Helper()
	if err := j.Report(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// Each edge is one entry, whichever process sees it, and however often it is reported.
func TestEdgesAreWrittenDownOnce(t *testing.T) {
	disk := &configsynctest.Disk{}
	for _, s := range life() {
		j := open(t, disk) // as if each report came from a process of its own
		report(t, j, s)
		report(t, j, s)
	}
	entries, totals, err := history.Read(t.Context(), disk)
	if err != nil || !slices.Equal(spelled(entries), want()) {
		t.Errorf("%v: %q, want %q", err, spelled(entries), want())
	}
	for i, e := range entries {
		if e.N != uint64(i+1) || e.At.IsZero() {
			t.Errorf("entry %d has number %d and time %s", i, e.N, e.At)
		}
	}
	if !slices.Contains(totals, history.Total{Kind: history.RolledBack, Class: "Invalid", Count: 1}) {
		t.Errorf("totals %+v, want one rollback because of an invalid config", totals)
	}
}

// C-32: an edge whose write failed is made up for by the next report that lands.
func TestFailedWriteIsMadeUpFor(t *testing.T) {
	disk := &configsynctest.Disk{}
	j := open(t, disk)
	all := life()
	report(t, j, all[0])
	disk.Fail(errors.New("no space left on device"))
	for _, s := range all[1:5] {
		if err := j.Report(t.Context(), s); err == nil {
			t.Error("Report on a full disk = nil, want an error")
		}
	}
	if got := spelled(j.Entries()); len(got) != 1 {
		t.Errorf("%q is told of what is not on record", got)
	}
	disk.Fail(nil)
	report(t, j, all[4])
	if got, want := spelled(j.Entries()), []string{"Started a", "Adopted b", "Rejected b Invalid", "Started a"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The journal is bounded, in entries and in bytes of each; what repeats is counted; totals outlive what is dropped.
func TestJournalIsBounded(t *testing.T) {
	disk := &configsynctest.Disk{}
	j := open(t, disk)
	for i := range 2 * history.MaxEntries {
		e := history.Entry{Kind: history.Drifted, Why: fmt.Sprint(i/2, strings.Repeat("ä", 1000))}
		if err := j.Add(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Add(t.Context(), history.Entry{Kind: history.Alarm}); err != nil {
		t.Fatal(err)
	}
	entries := open(t, disk).Entries()
	if len(entries) != history.MaxEntries || entries[len(entries)-1].N != history.MaxEntries+1 {
		t.Fatalf("%d entries, the last is number %d; want %d and %d", len(entries), entries[len(entries)-1].N, history.MaxEntries, history.MaxEntries+1)
	}
	if e := entries[0]; len(e.Why) > history.MaxWhy || e.Times != 2 || e.Last.Before(e.At) {
		t.Errorf("entry with %d bytes, %d times, last %s; want at most %d bytes, twice", len(e.Why), e.Times, e.Last, history.MaxWhy)
	}
	if got := open(t, disk).Totals(); !slices.Contains(got, history.Total{Kind: history.Drifted, Count: 2 * history.MaxEntries}) {
		t.Errorf("totals %+v, want all that was ever added", got)
	}
}

// C-06: a record that can't be read is an entry, and stops nothing; one of a later format is left alone.
func TestJournalThatCantBeRead(t *testing.T) {
	disk := &configsynctest.Disk{}
	for _, raw := range []string{"", "{", `{"entries":7}`} {
		if err := disk.Put(t.Context(), history.Stream, []byte(raw)); err != nil {
			t.Fatal(err)
		}
		if got := spelled(open(t, disk).Entries()); !slices.Equal(got, []string{"Lost"}) {
			t.Errorf("of %q: %q, want Lost", raw, got)
		}
	}
	if err := disk.Put(t.Context(), history.Stream, []byte(`{"format":9}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := history.Open(t.Context(), disk, nil); err == nil {
		t.Error("Open of a later format = nil, want an error")
	}
	if j := open(t, nil); j.Report(t.Context(), life()[0]) != nil || len(j.Entries()) != 1 {
		t.Errorf("without a store it has %+v", j.Entries())
	}
}

// Entries are passed on in order, after trouble and after a restart, and starts are not.
func TestTellerPassesOnUntilItLands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &configsynctest.Disk{}
		var got []history.Entry
		var down atomic.Bool
		down.Store(true)
		send := func(_ context.Context, e history.Entry) error {
			if down.Load() {
				return errors.New("503")
			}
			got = append(got, e)
			return nil
		}
		j := open(t, disk)
		for _, s := range life() {
			report(t, j, s)
		}
		if err := history.NewTeller(j, send).Flush(t.Context()); err == nil || got != nil {
			t.Fatalf("Flush without a server = %v, told %v", err, got)
		}
		j = open(t, disk) // a restart
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { history.NewTeller(j, send).Run(ctx); close(done) }()
		time.Sleep(10 * time.Second)
		down.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		told := []string{"Adopted b", "Rejected b Invalid", "RolledBack a Invalid", "Stuck b", "Freed b"}
		if !slices.Equal(spelled(got), told) {
			t.Errorf("told %q, want %q", spelled(got), told)
		}
		if err := j.Add(ctx, history.Entry{Kind: history.Alarm}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if spelled(got)[len(got)-1] != "Alarm" {
			t.Errorf("told %q, want what is new at once", spelled(got))
		}
		cancel()
		<-done
		n := len(got)
		if err := history.NewTeller(open(t, disk), send).Flush(t.Context()); err != nil || len(got) != n {
			t.Errorf("%v: told %q again", err, spelled(got[n:]))
		}
	})
}

// A restart does not wait for a server that hangs.
func TestFlushIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := open(t, nil)
		if err := j.Add(t.Context(), history.Entry{Kind: history.Alarm}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := history.NewTeller(j, func(ctx context.Context, _ history.Entry) error { <-ctx.Done(); return ctx.Err() }).Flush(t.Context())
		if took := time.Since(began); err == nil || took > time.Second {
			t.Errorf("Flush took %s and returned %v, want an error within a second", took, err)
		}
	})
}

// L-CS-34: a trial that is neither promoted nor rejected is told of once, over restarts, and again for the next config.
func TestOverdueTrialIsToldOnce(t *testing.T) {
	disk, now := &configsynctest.Disk{}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := configsync.Status{Assigned: ref("a"), Active: ref("a"), StartedAt: now, Trial: &configsync.TrialStatus{Since: now, Needed: 10 * time.Minute}}
	look := func(after time.Duration) {
		t.Helper()
		now = now.Add(after)
		j, err := history.Open(t.Context(), disk, func() time.Time { return now }) // a process of its own
		if err != nil {
			t.Fatal(err)
		}
		report(t, j, s)
	}
	want := func(entries ...string) {
		t.Helper()
		got, _, err := history.Read(t.Context(), disk)
		if err != nil || !slices.Equal(spelled(got), entries) {
			t.Errorf("%v: %q, want %q", err, spelled(got), entries)
		}
	}
	look(time.Hour)
	want("Started a")
	look(time.Minute)
	look(time.Hour)
	want("Started a", "Overdue a")
	s.Assigned, s.Active, s.Trial = ref("b"), ref("b"), &configsync.TrialStatus{Since: now, Needed: time.Hour}
	look(3 * time.Hour)
	want("Started a", "Overdue a", "Adopted b")
	look(time.Minute)
	look(time.Minute)
	want("Started a", "Overdue a", "Adopted b", "Overdue b")
	if _, totals, err := history.Read(t.Context(), disk); err != nil || !slices.Contains(totals, history.Total{Kind: history.Overdue, Count: 2}) {
		t.Errorf("%v: totals %+v, want each overdue trial counted once", err, totals)
	}
}
