// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A damaged file that is gone when it is looked at again says nothing: it was dropped, or its stream deleted, while it was read.
func TestDamagedFileThatGoesWhileItIsRead(t *testing.T) {
	dir, spy := t.TempDir(), newSpy()
	s := openSpied(t, spy, dir, bare())
	mustPut(t, s, "a", "one")
	mustPut(t, s, "a", "two")
	newest := recordFile("a", 2)
	if err := os.WriteFile(filepath.Join(dir, newest), []byte("no record"), 0o600); err != nil {
		t.Fatal(err)
	}
	spy.before = func(c call) error {
		if c.op == "statat" && c.file == newest {
			return os.Remove(filepath.Join(dir, newest))
		}
		return nil
	}
	_, _, _, f := s.reader.load.load(s.books.root.fd, name{base: "a"}, 2, nil)
	if f == nil || f.reason != reasonMissing {
		t.Errorf("got %+v, want it missing", f)
	}
}

// Who reads a file that a Put or a Delete has just dropped reads again; that it waits for a Delete ends with its context.
func TestReadBesideADeleteEnds(t *testing.T) {
	s := openStore(t, t.TempDir(), bare())
	mustPut(t, s, "a", "one")
	st := s.books.root.streams["a"]
	if st == nil {
		t.Fatal("there is no stream a")
	}
	if !s.reader.isSuperseded(t.Context(), st, 99) {
		t.Error("a generation that is not in the books counts as there")
	}
	if err := st.take(t.Context()); err != nil { // as a Delete does
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if !s.reader.isSuperseded(ended, st, 1) {
		t.Error("the context has ended, and the file counts as lost")
	}
	st.release()
	if s.reader.isSuperseded(t.Context(), st, 1) {
		t.Error("a generation that nobody drops counts as dropped")
	}
	if _, err := s.Read(ended, "a"); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("Read with a context that has ended: %v", err)
	}
}
