// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// TestIncidents breaks the safety rules of the package one by one. Each mutant must fail the tests it names.
func TestIncidents(t *testing.T) {
	mutate.Incidents(t, []mutate.Incident{
		{
			Why:     "a record is acknowledged before its file is fsynced",
			Func:    "(*recordWriter).writeOnce",
			Replace: "w.dir.sys.sync(fd)",
			With:    "nil",
			Run:     "^TestFaultD1EveryCrashState$",
		},
		{
			Why:     "a record is acknowledged before its directory is fsynced",
			Func:    "(*recordWriter).publishFile",
			Replace: "st.in.barrier.wait()",
			With:    "error(nil)",
			Run:     "^TestFaultD1EveryCrashState$",
		},
		{
			Why:  "the directory is fsynced before the rename",
			Func: "(*recordWriter).publishFile",
			Replace: `if err == nil {
		if err = w.dir.sys.rename(st.in.fd, temp, file); isMedia(err) {
			return w.enterUnconfirmed(st, temp, g, err)
		}
	}`,
			With: `if err := st.in.barrier.wait(); err != nil {
		return err
	}
	defer w.dir.sys.rename(st.in.fd, temp, file)
	if err == nil {
		w.acknowledgeRecord(st, g)
		return nil
	}`,
			Run: "^TestFaultD1EveryCrashState$",
		},
		{
			Why:     "the entry of a new directory is not fsynced",
			Func:    "(*tree).makeFolder",
			Replace: "t.dir.root.barrier.wait()",
			With:    "error(nil)",
			Run:     "^TestFaultD1EveryCrashState$",
		},
		{
			Why:  "a caller that arrives during an fsync shares it",
			Func: "(*barrier).wait",
			Replace: `b.mu.Lock()
	b.next = nil
	b.mu.Unlock()
	f.done, f.err = true, b.flush()`,
			With: `f.done, f.err = true, b.flush()
	b.mu.Lock()
	b.next = nil
	b.mu.Unlock()`,
			Run: "^TestFaultD1EveryCrashState$",
		},
		{
			Why:     "a short write is taken for a whole one",
			Func:    "writeAll",
			Replace: "len(bufs) > 0 && n >= len(bufs[0])",
			With:    "len(bufs) > 0",
			Run:     "^TestFaultD5EveryCallFails$",
		},
		{
			Why:     "a file is fsynced again after its fsync failed",
			Func:    "(*recordWriter).writeOnce",
			Replace: "err = w.dir.sys.sync(fd)",
			With: `if err = w.dir.sys.sync(fd); err != nil {
			err = w.dir.sys.sync(fd)
		}`,
			Run: "^TestFaultD6LostSyncs$",
		},
		{
			Why:     "an unconfirmed record is trusted because it reads well",
			Func:    "(*books).findStanding",
			Replace: "len(st.gens) == 0 || st.unsure",
			With:    "len(st.gens) == 0",
			Run:     "^TestFaultD6LostSyncs$",
		},
		{
			Why:     "generations of a deleted stream are used again",
			Func:    "(*stream).next",
			Replace: "max(st.top, st.in.floor)",
			With:    "st.top",
			Run:     "^TestFaultD1EveryCrashState$",
		},
		{
			Why:     "the digest of the payload is not compared",
			Func:    "decodeBody",
			Replace: "got != h.payload",
			With:    "false",
			Run:     "^TestFaultD9BitRot$",
		},
		{
			Why:  "a deletion is acknowledged before it is durable",
			Func: "(*remover).removeStream",
			Replace: `if err := st.in.barrier.wait(); err != nil {
		m.books.vanishStream(st)
		return indeterminate(err)
	}`,
			With: `if err := error(nil); err != nil {
		m.books.vanishStream(st)
		return indeterminate(err)
	}`,
			Run: "^TestFaultD1EveryCrashState$",
		},
		{
			Why:     "a file of a set takes its name before its content is fsynced",
			Func:    "(*transaction).writeTemp",
			Replace: "t.sys.sync(fd)",
			With:    "nil",
			Run:     "^TestFaultD1FileSetIsWholeOrUndone$",
		},
		{
			Why:     "a set is acknowledged before the directories of its files are fsynced",
			Func:    "(*transaction).swapFiles",
			Replace: "t.syncDirs()",
			With:    "error(nil)",
			Run:     "^TestFaultD1FileSetIsWholeOrUndone$",
		},
		{
			Why:     "the files of a set are changed before the journal says so",
			Func:    "(*transaction).runPhases",
			Replace: "t.j.putJournal(ctx, t.store)",
			With:    "error(nil)",
			Run:     "^TestFaultD1FileSetIsWholeOrUndone$",
		},
		{
			Why:     "recovery takes back what another program wrote",
			Func:    "(*transaction).undoFile",
			Replace: "now != c.New",
			With:    "false",
			Run:     "^TestFaultD1FileSetIsWholeOrUndone$",
		},
	})
}
