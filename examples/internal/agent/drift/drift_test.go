// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/examples/internal/agent/drift"
)

// A node is a file, a disk that outlives processes, and what was told.
type node struct {
	path string
	disk *configsynctest.Disk
	told []string
	deaf error // what Tell returns
	torn error // what Write returns once it has written
}

func newNode(t *testing.T) *node {
	return &node{path: filepath.Join(t.TempDir(), "kubelet.conf"), disk: &configsynctest.Disk{}}
}

// start is a process of its own.
func (n *node) start(t *testing.T, p drift.Policy) *drift.Watch {
	t.Helper()
	w, err := drift.Open(t.Context(), drift.Options{
		Path: n.path, Policy: p, Store: n.disk,
		Write:  func(b []byte) error { return errors.Join(os.WriteFile(n.path, b, 0o600), n.torn) },
		Remove: func() error { return errors.Join(os.Remove(n.path), n.torn) },
		Tell: func(_ context.Context, f drift.Finding) error {
			if n.deaf == nil {
				n.told = append(n.told, f.Found)
			}
			return n.deaf
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (n *node) edit(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(n.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// holds checks the content of the file and how often somebody was told.
func (n *node) holds(t *testing.T, text string, told int) {
	t.Helper()
	got, err := os.ReadFile(n.path)
	if err != nil || string(got) != text || len(n.told) != told {
		t.Fatalf("the file holds %q (%v) and %q was told, want %q and %d", got, err, n.told, text, told)
	}
}

// L-CS-28: a drift is told when it is seen, once, over restarts of the watch, and changes nothing on the node; the next one is told again.
func TestReportTellsOnceOverRestarts(t *testing.T) {
	n := newNode(t)
	w := n.start(t, drift.Report)
	must(t, w.Look(t.Context())) // nothing was rendered
	must(t, w.Render(t.Context(), []byte("one")))
	must(t, w.Look(t.Context()))
	n.holds(t, "one", 0)
	n.edit(t, "two")
	for range 3 {
		must(t, w.Look(t.Context()))
		w = n.start(t, drift.Report)
		must(t, w.Look(t.Context()))
		if w.Now().Found == "" || w.Now().At.IsZero() || !strings.HasPrefix(w.Now().Want, "sha256:") {
			t.Fatalf("now is %+v, want the drift with its time", w.Now())
		}
	}
	n.holds(t, "two", 1)
	n.edit(t, "three")
	must(t, w.Look(t.Context()))
	n.holds(t, "three", 2)
	must(t, w.Render(t.Context(), []byte("four")))
	must(t, os.Remove(n.path))
	must(t, w.Look(t.Context()))
	must(t, os.Symlink(filepath.Join(t.TempDir(), "x"), n.path))
	must(t, w.Look(t.Context()))
	if got := n.told[2:]; !slices.Equal(got, []string{drift.Absent, drift.NotRegular}) {
		t.Errorf("told %q, want what is there instead", got)
	}
}

// L-CS-28: what was changed while nobody looked is told before it is overwritten by the next start.
func TestRenderTellsWhatItOverwrites(t *testing.T) {
	n := newNode(t)
	must(t, n.start(t, drift.Report).Render(t.Context(), []byte("one")))
	n.edit(t, "edited")
	w := n.start(t, drift.Report)
	must(t, w.Render(t.Context(), []byte("two")))
	n.holds(t, "two", 1)
	must(t, w.Look(t.Context()))
	if n.holds(t, "two", 1); w.Now() != (drift.Finding{}) {
		t.Errorf("now is %v, want nothing", w.Now())
	}
}

// L-CS-28: a file that was taken away is to stay away, over restarts; that it is gone is no drift, and that it is back is one.
func TestRemovedIsToStayAway(t *testing.T) {
	n := newNode(t)
	w := n.start(t, drift.Report)
	must(t, w.Render(t.Context(), []byte("one")))
	must(t, w.Remove(t.Context()))
	must(t, w.Look(t.Context()))
	if len(n.told) > 0 {
		t.Fatalf("%q was told of a file that was to be removed", n.told)
	}
	n.edit(t, "back")
	must(t, n.start(t, drift.Report).Look(t.Context()))
	must(t, w.Look(t.Context()))
	if n.holds(t, "back", 2); w.Now().Want != drift.Absent {
		t.Errorf("now is %+v, want a file where none was rendered", w.Now())
	}
	w = n.start(t, drift.Repair)
	must(t, w.Remove(t.Context()))
	n.edit(t, "again")
	must(t, w.Look(t.Context()))
	if _, err := os.Lstat(n.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the repair the file is there (%v), want it taken away", err)
	}
	must(t, w.Render(t.Context(), []byte("two")))
	must(t, w.Look(t.Context()))
	n.holds(t, "two", len(n.told))
}

// A watch that can't remove says which part is missing.
func TestRemoveTakesARemove(t *testing.T) {
	w, err := drift.Open(t.Context(), drift.Options{
		Path: "/run/x", Write: func([]byte) error { return nil }, Tell: func(context.Context, drift.Finding) error { return nil },
	})
	must(t, err)
	if err := w.Remove(t.Context()); err == nil || !strings.Contains(err.Error(), "Options.Remove") {
		t.Errorf("Remove = %v, want the option that is missing", err)
	}
}

// A file on a tmpfs is gone after a boot: nobody has changed it.
func TestBootIsNoDrift(t *testing.T) {
	n := newNode(t)
	must(t, n.start(t, drift.Report).Render(t.Context(), []byte("one")))
	must(t, os.Remove(n.path))
	w := n.start(t, drift.Report)
	must(t, w.Look(t.Context()))
	must(t, w.Render(t.Context(), []byte("one")))
	n.holds(t, "one", 0)
}

// L-CS-28: a repair tells, and then writes what this process has rendered; each drift is another one.
func TestRepairRestores(t *testing.T) {
	n := newNode(t)
	w := n.start(t, drift.Repair)
	must(t, w.Render(t.Context(), []byte("one")))
	for i := range 2 {
		n.edit(t, "edited")
		must(t, w.Look(t.Context()))
		n.holds(t, "one", i+1)
	}
	n.edit(t, "edited")
	must(t, n.start(t, drift.Repair).Look(t.Context())) // it has rendered nothing yet
	n.holds(t, "edited", 3)
	n.deaf = errors.New("disk full")
	n.edit(t, "again")
	if err := w.Look(t.Context()); !errors.Is(err, n.deaf) {
		t.Errorf("Look = %v, want what is in the way of telling", err)
	}
	n.holds(t, "again", 3) // what is not told is not wiped away
	n.deaf = nil
	must(t, w.Look(t.Context()))
	n.holds(t, "one", 4)
}

// L-CS-28: whether a process was killed before or after its write, nobody is told of a drift.
func TestKilledWriteIsNoDrift(t *testing.T) {
	for _, after := range []string{"one", "two"} {
		n := newNode(t)
		w := n.start(t, drift.Report)
		must(t, w.Render(t.Context(), []byte("one")))
		n.torn = errors.New("killed")
		if err := w.Render(t.Context(), []byte("two")); !errors.Is(err, n.torn) {
			t.Fatalf("Render = %v, want the error of Write", err)
		}
		n.edit(t, after)
		must(t, n.start(t, drift.Report).Look(t.Context()))
		n.holds(t, after, 0)
	}
}

// A disk that is full keeps no config from being rendered, and a record that is spoilt is begun anew.
func TestStoreInTroubleStopsNothing(t *testing.T) {
	n := newNode(t)
	must(t, n.disk.Put(t.Context(), drift.Stream, []byte("{")))
	w := n.start(t, drift.Report)
	n.disk.Fail(errors.New("no space left on device"))
	must(t, w.Render(t.Context(), []byte("one")))
	n.holds(t, "one", 0)
	if err := w.Look(t.Context()); err == nil {
		t.Error("Look = nil, want what is in the way")
	}
	n.disk.Fail(nil)
	must(t, w.Look(t.Context()))
	n.edit(t, "edited")
	must(t, n.start(t, drift.Report).Look(t.Context()))
	n.holds(t, "edited", 1)
}

// Run looks each interval, and ends with its context.
func TestRunLooks(t *testing.T) {
	n := newNode(t)
	synctest.Test(t, func(t *testing.T) {
		w := n.start(t, drift.Repair)
		must(t, w.Render(t.Context(), []byte("one")))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.Run(ctx, time.Minute, nil); close(done) }()
		n.edit(t, "edited")
		time.Sleep(time.Minute)
		synctest.Wait()
		n.holds(t, "one", 1)
		cancel()
		<-done
	})
}

func TestOpenNamesMistakes(t *testing.T) {
	if _, err := drift.Open(t.Context(), drift.Options{Path: "relative"}); err == nil {
		t.Error("Open = nil, want an error")
	}
}
