// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/lkg"
)

func end(t *testing.T, result, code, status string) restart.End {
	t.Helper()
	e, err := restart.EndFromEnv(env(result, code, status))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// C-01: what systemd knows about the end of a run comes to the next start, in the words of package lkg.
func TestEndsOfAUnit(t *testing.T) {
	for _, c := range []struct {
		result, code, status string
		asked                bool
		want                 lkg.Exit
	}{
		{"success", "exited", "0", false, lkg.Exit{Kind: lkg.ExitClean, Detail: "exit status 0, after 3s"}},
		{"success", "exited", "0", true, lkg.Exit{Kind: lkg.ExitPlanned, Detail: "stopped on request: exit status 0, after 3s"}},
		{"success", "killed", "TERM", false, lkg.Exit{Kind: lkg.ExitClean, Detail: "killed by SIGTERM, after 3s"}},
		{"success", "", "", false, lkg.Exit{Detail: "ended without a main process, after 3s"}},
		{"exit-code", "exited", "255", false, lkg.Exit{Kind: lkg.ExitCrash, Detail: "exit status 255, systemd says exit-code, after 3s"}},
		{"exit-code", "exited", "203", false, lkg.Exit{
			Kind: lkg.ExitCrash, Detail: "exit status 203, systemd says exit-code, after 3s",
			Fault: lkg.FaultNotExecuted, Signature: "systemd could not execute the program",
		}},
		{"signal", "killed", "SEGV", false, lkg.Exit{Kind: lkg.ExitCrash, Detail: "killed by SIGSEGV, systemd says signal, after 3s"}},
		{"core-dump", "dumped", "ABRT", false, lkg.Exit{Kind: lkg.ExitCrash, Detail: "dumped by SIGABRT, systemd says core-dump, after 3s"}},
		{"watchdog", "dumped", "ABRT", false, lkg.Exit{Kind: lkg.ExitCrash, Detail: "dumped by SIGABRT, systemd says watchdog, after 3s"}},
		{"oom-kill", "killed", "KILL", false, lkg.Exit{Kind: lkg.ExitCrash, Detail: "killed by SIGKILL, systemd says oom-kill, after 3s"}},
		{"timeout", "killed", "KILL", true, lkg.Exit{Kind: lkg.ExitPlanned, Detail: "stopped on request: killed by SIGKILL, systemd says timeout, after 3s"}},
		{"resources", "", "", false, lkg.Exit{Detail: "ended without a main process, systemd says resources, after 3s"}},
		{"new-in-systemd", "exited", "1", false, lkg.Exit{Detail: "exit status 1, systemd says new-in-systemd, after 3s"}},
		{"a b\n{", "exited", strings.Repeat("9", 99), false, lkg.Exit{Detail: "exit status " + strings.Repeat("9", 32) + ", systemd says a?b??, after 3s"}},
	} {
		now := time.Hour
		u := restart.Unit{Store: &configsynctest.Disk{}, Boot: "b1", Invocation: "i1", SinceBoot: func() time.Duration { return now }}
		last(t, u, lkg.Exit{})
		now += 3 * time.Second
		if c.asked {
			must(t, u.Stopping(t.Context()))
		}
		must(t, u.Ended(t.Context(), end(t, c.result, c.code, c.status)))
		u.Invocation = "i2"
		last(t, u, c.want)
	}
	if _, err := restart.EndFromEnv(env("", "exited", "0")); !errors.Is(err, restart.ErrNoEnd) {
		t.Errorf("outside ExecStopPost the error is %v, want ErrNoEnd", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// last fails the test unless the present start is told want.
func last(t *testing.T, u restart.Unit, want lkg.Exit) {
	t.Helper()
	got, err := u.Last(t.Context())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Last = %+v, %v, want %+v", got, err, want)
	}
}

// L-CS-01: where the main process supervises what is configured, its own bad end is no end of the config's.
func TestTheEndOfASupervisorIsNoCrash(t *testing.T) {
	for _, c := range []struct {
		result, code, status string
		want                 lkg.Exit
	}{
		{"oom-kill", "killed", "KILL", lkg.Exit{
			Kind: lkg.ExitCrash, Detail: "killed by SIGKILL, systemd says oom-kill",
			Fault: lkg.FaultSupervisor, Signature: "the supervisor ended: killed KILL",
		}},
		{"exit-code", "exited", "1", lkg.Exit{
			Kind: lkg.ExitCrash, Detail: "exit status 1, systemd says exit-code",
			Fault: lkg.FaultSupervisor, Signature: "the supervisor ended: exited 1",
		}},
		{"exit-code", "exited", "203", lkg.Exit{
			Kind: lkg.ExitCrash, Detail: "exit status 203, systemd says exit-code",
			Fault: lkg.FaultNotExecuted, Signature: "systemd could not execute the program",
		}},
		{"success", "exited", "0", lkg.Exit{Kind: lkg.ExitClean, Detail: "exit status 0"}},
	} {
		u := restart.Unit{Store: &configsynctest.Disk{}, Boot: "b1", Invocation: "i1", Supervises: true}
		must(t, u.Ended(t.Context(), end(t, c.result, c.code, c.status)))
		u.Invocation = "i2"
		last(t, u, c.want)
	}
}

// C-33: what explains a start explains one start. A stop that was asked for once, and an end in another boot,
// explain nothing later.
func TestEachEndIsToldOnce(t *testing.T) {
	u := restart.Unit{Store: &configsynctest.Disk{}, Boot: "b1", Invocation: "i1"}
	crash := end(t, "exit-code", "exited", "1")
	must(t, errors.Join(u.Stopping(t.Context()), u.Ended(t.Context(), crash)))
	u.Invocation = "i2"
	last(t, u, lkg.Exit{Kind: lkg.ExitPlanned, Detail: "stopped on request: exit status 1, systemd says exit-code"})
	u.Invocation = "i3"
	last(t, u, lkg.Exit{})
	must(t, u.Ended(t.Context(), crash))
	u.Invocation = "i4"
	last(t, u, lkg.Exit{Kind: lkg.ExitCrash, Detail: "exit status 1, systemd says exit-code"})
	must(t, errors.Join(u.Stopping(t.Context()), u.Ended(t.Context(), crash)))
	u.Boot, u.Invocation = "b2", "i5"
	last(t, u, lkg.Exit{})
	u.Boot, u.Invocation = "b1", "i6"
	last(t, u, lkg.Exit{})
}

// C-06: damaged notes are trouble for the log; the start after the next is told again. What can't be removed is
// not used.
func TestTroubleWithNotesIsNoEvidence(t *testing.T) {
	disk := &configsynctest.Disk{}
	u := restart.Unit{Store: disk, Boot: "b1", Invocation: "i1"}
	for _, stream := range []string{"unit-start", "unit-stop", "unit-end"} {
		must(t, disk.Put(t.Context(), stream, []byte("{")))
	}
	if got, err := u.Last(t.Context()); err == nil || !reflect.DeepEqual(got, lkg.Exit{}) {
		t.Errorf("Last over damaged notes = %+v, %v, want nothing, and the trouble", got, err)
	}
	if err := u.Ended(t.Context(), end(t, "signal", "killed", "KILL")); err == nil {
		t.Error("a damaged note of a stop is no trouble")
	}
	disk.Fail(errors.New("read-only"))
	if got, err := u.Last(t.Context()); err == nil || !reflect.DeepEqual(got, lkg.Exit{}) {
		t.Errorf("Last on a read-only disk = %+v, %v, want nothing, and the trouble: it would explain the start after, too", got, err)
	}
	disk.Fail(nil)
	last(t, u, lkg.Exit{Kind: lkg.ExitCrash, Detail: "killed by SIGKILL, systemd says signal"})
}

// The kernel and systemd say which boot and which start a process belongs to.
func TestOwnUnit(t *testing.T) {
	t.Setenv("INVOCATION_ID", "i1")
	u, err := restart.OwnUnit(&configsynctest.Disk{})
	if err != nil || u.Invocation != "i1" || len(u.Boot) != 36 || u.SinceBoot() <= 0 {
		t.Errorf("OwnUnit = %+v, %v, want a boot ID, i1 and a clock that runs", u, err)
	}
}
