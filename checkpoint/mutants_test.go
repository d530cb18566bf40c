// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"os"
	"slices"
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// Every way to get the protocol wrong is caught, and by which test: most by the crash file system.
func TestMutantsAreKilled(t *testing.T) {
	mutants := slices.Concat(mutantsOfWriting(), mutantsOfSharing(), mutantsOfErrors(), mutantsOfNumbers(), mutantsOfReading(), mutantsOfDeleting())
	t.Cleanup(func() {
		if os.Getenv("BELAY_MUTANTS") == "all" && !t.Failed() && !mutate.Running() {
			t.Logf("fault mutants killed=%d lost=0 bar=12 ok", len(mutants))
		}
	})
	mutate.Sample(t, mutants)
}

const (
	crashes = "^TestFaultD1EveryCrashState$"
	lost    = "^TestFaultD6LostSyncs$"
	rot     = "^TestFaultD9BitRot$"
)

func mutantsOfWriting() []mutate.Mutant {
	return []mutate.Mutant{
		{Name: "the file is not fsynced", File: "put.go", Run: crashes, Old: "err = s.sys.sync(fd)", New: "err = nil"},
		{
			Name: "the directory is not fsynced", File: "publish.go", Run: crashes,
			Old: "if err := st.in.barrier.wait(); err != nil {", New: "if err := error(nil); err != nil {",
		},
		{
			Name: "the directory is fsynced before the rename", File: "publish.go", Run: crashes,
			Old: `	if err == nil {
		if err = s.sys.rename(st.in.fd, temp, file); isMedia(err) {
			return s.unconfirmed(st, temp, g, err)
		}
	}
`,
			New: `	if err := st.in.barrier.wait(); err != nil {
		return err
	}
	defer s.sys.rename(st.in.fd, temp, file)
	if err == nil {
		s.acknowledge(st, g)
		return nil
	}
`,
		},
		{
			Name: "the old ones go before the new one is durable", File: "publish.go", Run: crashes,
			Old: "	if err := st.in.barrier.wait(); err != nil {",
			New: `	for _, old := range s.generations(st) {
		_ = s.sys.unlink(st.in.fd, recordFile(st.name.base, old.gen))
	}
	if err := st.in.barrier.wait(); err != nil {`,
		},
	}
}

func mutantsOfSharing() []mutate.Mutant {
	return []mutate.Mutant{
		{
			Name: "the entry of a new directory is not fsynced", File: "put.go", Run: crashes,
			Old: "if err = s.root.barrier.wait(); err != nil {", New: "if err != nil {",
		},
		{
			Name: "the entries of the path are not fsynced", File: "open.go", Run: crashes,
			Old: "if err = s.sys.sync(fd); err != nil {", New: "if err != nil {",
		},
		{
			Name: "who comes during an fsync shares it", File: "barrier.go", Run: crashes,
			Old: `	b.mu.Lock()
	b.next = nil // who arrives from here on may have changed the directory after the fsync below began
	b.mu.Unlock()
	f.done, f.err = true, b.flush()
`,
			New: `	f.done, f.err = true, b.flush()
	b.mu.Lock()
	b.next = nil
	b.mu.Unlock()
`,
		},
		{
			Name: "a write that stopped short is taken for whole", File: "draft.go", Run: "^TestFaultD5EveryCallFails$",
			Old: "for len(bufs) > 0 && n >= len(bufs[0]) {", New: "for len(bufs) > 0 {",
		},
		{
			Name: "a name that is taken is replaced", File: "fsys_linux.go", Run: "^TestTakenNamesAreNotReplaced$",
			Old: "unix.RENAME_NOREPLACE", New: "0",
		},
	}
}

func mutantsOfErrors() []mutate.Mutant {
	return []mutate.Mutant{
		{
			Name: "an error of close is ignored", File: "put.go", Run: "^TestFailedCloseIsNoSuccess$",
			Old: "if closing := s.sys.close(fd); err == nil {", New: "if closing := s.sys.close(fd); false {",
		},
		{
			Name: "a file whose fsync failed is fsynced again", File: "put.go", Run: lost,
			Old: "err = s.sys.sync(fd)", New: "if err = s.sys.sync(fd); err != nil {\n\t\t\terr = s.sys.sync(fd)\n\t\t}",
		},
		{
			Name: "a directory whose fsync failed is fsynced again", File: "barrier.go", Run: lost,
			Old: "err := b.sys.sync(b.fd)", New: "err := b.sys.sync(b.fd)\n\tif err != nil {\n\t\terr = b.sys.sync(b.fd)\n\t}",
		},
		{
			Name: "what was not confirmed is trusted when it reads well", File: "put.go", Run: lost,
			Old: "if len(st.gens) == 0 || st.unsure {", New: "if len(st.gens) == 0 {",
		},
		{
			Name: "an error of the disk at the rename is taken for nothing written", File: "publish.go", Run: lost,
			Old: "isMedia(err) {", New: "false {",
		},
		{
			Name: "no mark tells the next process of what was not confirmed", File: "publish.go", Run: lost,
			Old: "if !marked {", New: "if marked {",
		},
		{
			Name: "a directory whose entry was not made durable stays", File: "put.go", Run: lost,
			Old: "_ = s.sys.rmdir(s.root.fd, dir)", New: "_ = dir",
		},
	}
}

func mutantsOfNumbers() []mutate.Mutant {
	return []mutate.Mutant{
		{Name: "numbers of deleted streams are used again", File: "folder.go", Run: crashes, Old: "max(st.top, st.in.floor) + 1", New: "st.top + 1"},
		{
			Name: "numbers begin anew with the process", File: "folder.go", Run: crashes,
			Old: "	st.top = max(st.top, g.gen)\n	st.gens = append(st.gens, g)", New: "	st.gens = append(st.gens, g)",
		},
		{
			Name: "the number of a damaged file is used again", File: "aside.go", Run: "^TestDamageFallsBackIsReportedAndSetAside$",
			Old: "	st.top = max(st.top, a.gen)\n", New: "",
		},
		{
			Name: "one of the two newest that verified is dropped", File: "folder.go", Run: "^TestTheTwoNewestThatVerifyAreKept$",
			Old: "verified >= minGenerations && !g.is(ReasonTooNew)", New: "!g.is(ReasonTooNew)",
		},
		{
			Name: "what was not confirmed counts as verified, and room is made by it", File: "space.go", Run: "^TestUnsureStreamIsNotTrimmed$",
			Old: "if !st.unsure {", New: "if true {",
		},
	}
}

func mutantsOfReading() []mutate.Mutant {
	return []mutate.Mutant{
		{Name: "the digest of the payload is not compared", File: "record.go", Run: rot, Old: "got != h.payload {", New: "false && got != h.payload {"},
		{
			Name: "the digest of the header is not compared", File: "record.go", Run: rot,
			Old: "if hex.EncodeToString(sum[:]) != string(line[sumAt:len(line)-1]) {", New: "if false && sum[0] == 0 {",
		},
		{Name: "the end mark is not looked at", File: "record.go", Run: rot, Old: "string(body[h.length:]) != endMark:", New: "false:"},
		{Name: "what follows the record is not looked at", File: "record.go", Run: rot, Old: "case int64(len(body)) > want:", New: "case false:"},
		{
			Name: "what Open reads is not made durable", File: "recover.go", Run: crashes,
			Old: "if len(f.streams) == 0 || f.barrier.wait() == nil {", New: "if true {",
		},
		{
			Name: "temporary files stay", File: "recover.go", Run: crashes,
			Old: "_ = s.sys.unlink(f.fd, file) // where that fails, the next Open does it", New: "",
		},
		{Name: "what a crash kept above the quota stays", File: "recover.go", Run: crashes, Old: "if s.used > s.o.MaxStore {", New: "if false {"},
	}
}

func mutantsOfDeleting() []mutate.Mutant {
	return []mutate.Mutant{
		{
			Name: "a deletion is acknowledged before it is durable", File: "delete.go", Run: crashes,
			Old: "	if err := st.in.barrier.wait(); err != nil {\n		s.vanish(st)", New: "	if err := error(nil); err != nil {\n		s.vanish(st)",
		},
		{
			Name: "the newest goes before it is sure that the older ones are gone", File: "delete.go", Run: crashes,
			Old: "		if err := st.in.barrier.wait(); err != nil {\n			return err", New: "		if err := error(nil); err != nil {\n			return err",
		},
		{
			Name: "the content of what is deleted goes before the name", File: "delete.go", Run: crashes,
			Old: "		err = s.sys.rename(st.in.fd, r.last, floorFile(top))",
			New: "		s.truncateFile(st.in.fd, r.last)\n		err = s.sys.rename(st.in.fd, r.last, floorFile(top))",
		},
	}
}
