// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/lkg"
)

// A host is a unit whose configured process may crash, and the disk that it leaves.
type host struct {
	t           *testing.T
	disk, notes *configsynctest.Disk
	boot        string
	init        string
	starts      int
}

func (h *host) options() configsync.Options[string] {
	return configsync.Options[string]{
		Version: "v1", Key: "config", Codec: text{}, Store: h.disk, BootID: h.boot, FollowJitter: -1,
		Init: func(context.Context) (configsync.Object, error) {
			return configsync.Object{Data: map[string]string{"config": h.init}}, nil
		},
	}
}

// newHost has the config "remote" assigned, and not started yet.
func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{t: t, disk: &configsynctest.Disk{}, notes: &configsynctest.Disk{}, boot: "b1", init: "local"}
	server := &configsynctest.Server{}
	o := server.Put("ns", "c", map[string]string{"config": "remote"}, true)
	server.Name(&configsync.Spec{Namespace: "ns", Name: "c", UID: o.UID})
	options := h.options()
	options.Source, options.Fetcher, options.Restarter = server, server, restart.Exit{}
	s, err := configsync.New(t.Context(), options)
	must(t, err)
	_, err = s.Bootstrap(t.Context(), lkg.Exit{})
	must(t, err)
	var exit *restart.ExitError
	if err := s.Run(t.Context()); !errors.As(err, &exit) || exit.Change.Kind != configsync.Adopt {
		t.Fatalf("Run = %v, want the exit that adopts the config", err)
	}
	return h
}

// unit is that of the present start.
func (h *host) unit() restart.Unit {
	return restart.Unit{Store: h.notes, Boot: h.boot, Invocation: fmt.Sprint("i", h.starts)}
}

// guard begins the next start and returns the config in place.
func (h *host) guard() (config string, err error) {
	h.t.Helper()
	h.starts++
	used, err := restart.Guard(h.t.Context(), h.options(), h.unit(), func(_ context.Context, a configsync.Active[string]) error {
		config = a.Config
		return nil
	})
	if used != (config != "") {
		h.t.Errorf("used = %t, but the config in place is %q", used, config)
	}
	return config, err
}

// main is a main process that comes up.
func (h *host) main() (config string) {
	h.t.Helper()
	exit, err := h.unit().Last(h.t.Context())
	must(h.t, err)
	s, err := configsync.New(h.t.Context(), h.options())
	must(h.t, err)
	a, err := s.Bootstrap(h.t.Context(), exit)
	must(h.t, err)
	return a.Config
}

func (h *host) ended(result, code, status string) {
	h.t.Helper()
	must(h.t, h.unit().Ended(h.t.Context(), end(h.t, result, code, status)))
}

// guarded fails the test unless the next start is on want.
func (h *host) guarded(want, why string) {
	h.t.Helper()
	if got, err := h.guard(); err != nil || got != want {
		h.t.Errorf("start %d is on %q, %v, want %q: %s", h.starts, got, err, want, why)
	}
}

// R-CS-20, R-CS-42: a config under which the main process dies before it reads anything is left all the same,
// within its threshold.
func TestGuardCountsForADeadAgent(t *testing.T) {
	h := newHost(t)
	for range 2 {
		h.guarded("remote", "one unexplained restart is tolerated")
		h.ended("signal", "killed", "SEGV")
	}
	h.guarded("local", "it crashed twice")
	h.ended("signal", "killed", "SEGV")
	h.guarded("local", "a config that was left stays away")
	st, err := lkg.Load(t.Context(), h.disk, "v1")
	if err != nil || len(st.Bad) != 0 || st.Case == nil || st.Case.Counted != 2 {
		t.Errorf("on record is %+v, %+v, %v, want a suspicion after two ends, and nothing rejected", st.Case, st.Bad, err)
	}
}

// R-CS-62: guard and main process are one start: it is on record once, and counts once, whatever the main process
// does.
func TestGuardAndAgentCountOneStart(t *testing.T) {
	h := newHost(t)
	for range 2 {
		h.guarded("remote", "one unexplained restart is tolerated")
		if got := h.main(); got != "remote" {
			t.Errorf("start %d: the main process uses %q, want what the guard chose", h.starts, got)
		}
		h.ended("exit-code", "exited", "1")
	}
	h.guarded("local", "it crashed twice")
	if got := h.main(); got != "local" {
		t.Errorf("the main process uses %q, want what the guard chose", got)
	}
	st, err := lkg.Load(t.Context(), h.disk, h.options().Version)
	must(t, err)
	if len(st.Starts) != 1+3 {
		t.Errorf("on record are %d starts, want the one that adopted the config and 3: %+v", len(st.Starts), st.Starts)
	}
}

// C-01, C-33: restarts on request and reboots count against nobody.
func TestGuardForgivesWhatIsExplained(t *testing.T) {
	h := newHost(t)
	for range 5 {
		h.guarded("remote", "every restart was asked for")
		must(t, h.unit().Stopping(t.Context()))
		h.ended("success", "exited", "0")
	}
	for _, boot := range []string{"b2", "b3", "b4"} {
		h.guarded("remote", "every restart was asked for, or a reboot")
		h.boot = boot // a power cut
	}
	h.guarded("remote", "a reboot explains it")
}

// C-06, C-22: nothing that is merely remembered keeps a start down. Where the start can't be recorded, a config on
// trial isn't used.
func TestGuardStartsOverAnyRecords(t *testing.T) {
	h := newHost(t)
	streams := h.disk.Log()
	for _, stream := range streams {
		broken := &host{t: t, disk: h.disk.Clone(), notes: h.notes.Clone(), boot: "b1", init: "local"}
		must(t, broken.disk.Put(t.Context(), stream, []byte("\x00{")))
		if got, err := broken.guard(); got != "local" && got != "remote" {
			t.Errorf("with %q damaged the start is on %q, %v, want a config", stream, got, err)
		}
	}
	h.disk.Fail(errors.New("read-only"))
	h.notes.Fail(errors.New("read-only"))
	if got, err := h.guard(); got != "local" || err == nil {
		t.Errorf("on a read-only disk the start is on %q, %v, want the local config and the trouble", got, err)
	}
	h.disk, h.notes = nil, &configsynctest.Disk{}
	o := h.options()
	o.Store = nil
	used, err := restart.Guard(t.Context(), o, h.unit(), func(context.Context, configsync.Active[string]) error { return nil })
	if !used || err != nil {
		t.Errorf("without a store, Guard = %t, %v, want a start", used, err)
	}
}

// A start that the guard could not record is left for the main process to record.
func TestGuardHandsOverOnlyWhatIsOnRecord(t *testing.T) {
	h := newHost(t)
	h.disk.Fail(errors.New("full"))
	if got, _ := h.guard(); got != "local" {
		t.Fatalf("the start is on %q, want the local config: a trial must be on record", got)
	}
	h.disk.Fail(nil)
	if exit, err := h.unit().Last(t.Context()); err != nil || exit.Kind != "" || exit.Detail != "" {
		t.Errorf("the main process is told %+v, %v, want nothing: its start is not on record", exit, err)
	}
}

// R-CS-38: a guard that is killed before any of its writes leaves a disk on which the next one starts, and a
// crashing config is still left.
func TestGuardKilledAtEachWrite(t *testing.T) {
	for n := range 12 {
		h := newHost(t)
		h.disk.CutAfter(n, nil)
		_, _ = h.guard() // killed
		h.disk.CutAfter(-1, nil)
		for range 3 {
			h.ended("exit-code", "exited", "1")
			if got, err := h.guard(); got == "" {
				t.Errorf("killed before write %d, the next start is refused: %v", n, err)
			}
		}
		h.guarded("local", fmt.Sprintf("it crashed often enough, after a kill before write %d", n))
	}
}

// R-CS-52: a local config that is not good refuses the start, and nothing else is put in place.
func TestGuardRefusesABadBaseline(t *testing.T) {
	h := newHost(t)
	h.init = "invalid"
	var baseline *lkg.BaselineError
	if got, err := h.guard(); got != "" || !errors.As(err, &baseline) {
		t.Errorf("the start is on %q, %v, want a BaselineError", got, err)
	}
}

// What keeps the config from its place is an error.
func TestGuardSaysWhatIsInTheWay(t *testing.T) {
	h := newHost(t)
	inTheWay := errors.New("no space")
	used, err := restart.Guard(t.Context(), h.options(), h.unit(), func(context.Context, configsync.Active[string]) error { return inTheWay })
	if used || !errors.Is(err, inTheWay) {
		t.Errorf("Guard = %t, %v, want what is in the way", used, err)
	}
}
