// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/examples/agent/internal/node"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/lkg"
)

const local0 = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// A unitHost is a node whose agent dies before it does anything: only the commands of its unit run.
type unitHost struct {
	t                   *testing.T
	state, init, render string
	start               string
	more                []string // flags of the guard
}

// newUnitHost has the config good assigned, which tolerates no unexplained restart.
func newUnitHost(t *testing.T) *unitHost {
	t.Helper()
	return newUnitHostOf(t, good)
}

func newUnitHostOf(t *testing.T, config string) *unitHost {
	t.Helper()
	dir := t.TempDir()
	h := &unitHost{t: t, state: filepath.Join(dir, "state"), init: file(t, local0), render: filepath.Join(dir, "run", "kubelet.conf")}
	server := &configsynctest.Server{}
	obj := server.Put("ns", "c", map[string]string{"kubelet": config, configsync.KeyCrashLoopThreshold: "0"}, true)
	server.Name(&configsync.Spec{Namespace: "ns", Name: "c", UID: obj.UID})
	l := settings.Defaults()
	l.InitConfig = h.init
	o := l.Options()
	store, err := checkpoint.Open(h.state, checkpoint.Options{})
	h.must(err)
	o.Store, o.Source, o.Fetcher, o.Restarter = store, server, server, restart.Exit{}
	s, err := configsync.New(t.Context(), o)
	h.must(err)
	_, err = s.Bootstrap(t.Context(), lkg.Exit{})
	h.must(err)
	var exit *restart.ExitError
	if err := s.Run(t.Context()); !errors.As(err, &exit) {
		t.Fatalf("Run = %v, want the exit that adopts the config", err)
	}
	h.must(store.Close())
	return h
}

func (h *unitHost) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// begin is the next start of the unit; it returns what the guard says and the config in place.
func (h *unitHost) begin() (says, config string) {
	h.t.Helper()
	h.start += "i"
	h.t.Setenv("INVOCATION_ID", h.start)
	h.t.Setenv("MAINPID", "")
	args := append([]string{"--state-dir=" + h.state, "--init-config=" + h.init, "--render=" + h.render}, h.more...)
	says, err := execute(h.t, Guard(settings.Parts{}), args...)
	h.must(err)
	text, err := os.ReadFile(h.render)
	h.must(err)
	return says, string(text)
}

func (h *unitHost) command(c *cobra.Command) {
	h.t.Helper()
	_, err := execute(h.t, c, "--state-dir="+h.state)
	h.must(err)
}

// stops is the end of a main process that somebody asked to stop.
func (h *unitHost) stops() {
	h.t.Setenv("MAINPID", "1")
	h.command(Stopping())
	h.t.Setenv("SERVICE_RESULT", "success")
	h.t.Setenv("EXIT_CODE", "exited")
	h.t.Setenv("EXIT_STATUS", "0")
	h.command(Ended())
}

// crash is the end of a main process that was killed.
func (h *unitHost) crash() {
	h.t.Setenv("SERVICE_RESULT", "signal")
	h.t.Setenv("EXIT_CODE", "killed")
	h.t.Setenv("EXIT_STATUS", "SEGV")
	h.command(Stopping()) // systemd runs it after a crash, too, without MAINPID
	h.command(Ended())
}

// R-CS-20, R-CS-42, C-01: an agent that dies before it has read anything is counted, and its config left after more
// than 3 deaths; a stop that was asked for is not.
func TestUnitCommandsLeaveACrashingConfig(t *testing.T) {
	h := newUnitHost(t)
	for range 3 {
		if says, config := h.begin(); config != good {
			t.Fatalf("in place is %q, and the guard says %q, want the assigned config", config, says)
		}
		h.stops()
	}
	if _, config := h.begin(); config != good {
		t.Errorf("after restarts on request in place is %q, want the assigned config", config)
	}
	for range 3 {
		h.crash()
		if says, config := h.begin(); config != good {
			t.Errorf("after a death of the agent in place is %q, and the guard says %q, want the assigned config", config, says)
		}
	}
	h.crash()
	says, config := h.begin()
	if config != local0 || !strings.Contains(says, "deaths of the agent: 4, tolerated: 3") {
		t.Errorf("after four deaths in place is %q, and the guard says %q, want the local config, and why", config, says)
	}
}

// R-CS-62: the agent of the same start is told that it is counted; the one after it, how it ended.
func TestTheAgentIsToldWhatTheUnitKnows(t *testing.T) {
	h := newUnitHost(t)
	if exit, err := node.LastExit(t.Context(), t.TempDir()); err != nil || exit.Kind != "" || exit.Detail != "" {
		t.Errorf("without the unit's commands, LastExit = %+v, %v, want nothing", exit, err)
	}
	h.begin()
	if exit, err := node.LastExit(t.Context(), h.state); err != nil || exit.Kind != lkg.ExitCounted {
		t.Errorf("after the guard, LastExit = %+v, %v, want that it is counted", exit, err)
	}
	h.crash()
	t.Setenv("INVOCATION_ID", "without a guard")
	exit, err := node.LastExit(t.Context(), h.state)
	if err != nil || exit.Kind != lkg.ExitCrash || !strings.HasPrefix(exit.Detail, "killed by SIGSEGV, systemd says signal, after ") {
		t.Errorf("after a crash, LastExit = %+v, %v, want the crash and how long it ran", exit, err)
	}
}

// C-06, C-22: a guard beside an agent changes nothing, and one on a state directory that can't be used puts the local
// config in place.
func TestGuardOnAnyStateDirectory(t *testing.T) {
	h := newUnitHost(t)
	store, err := checkpoint.Open(h.state, checkpoint.Options{})
	h.must(err)
	says, err := execute(t, Guard(settings.Parts{}), "--state-dir="+h.state, "--init-config="+h.init, "--render="+h.render)
	if _, none := os.Stat(h.render); err != nil || !strings.Contains(says, "An agent holds the state directory") || none == nil {
		t.Errorf("beside an agent the guard says %q, %v, and the config's file is there (%v), want nothing done", says, err, none)
	}
	h.must(store.Close())
	h.state = file(t, "a file in its place")
	_, err = execute(t, Guard(settings.Parts{}), "--state-dir="+h.state, "--init-config="+h.init, "--render="+h.render)
	text, _ := os.ReadFile(h.render)
	if string(text) != local0 || err == nil {
		t.Errorf("without a state directory in place is %q, %v, want the local config, and the trouble", text, err)
	}
}

// L-CS-41: the guard of a kubelet that systemd runs moves the state of a config aside that was left.
func TestGuardMovesTheStateOfAConfigAside(t *testing.T) {
	h := newUnitHostOf(t, good+"cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n")
	root := t.TempDir()
	state := filepath.Join(root, "cpu_manager_state")
	h.more = []string{"--kubelet-root-dir=" + root}
	for range 2 {
		h.begin()
		h.must(os.WriteFile(state, []byte(`{"policyName":"static","defaultCpuSet":"0-1"}`), 0o600))
		h.stops()
		if _, err := os.Stat(state); err != nil {
			t.Fatalf("the state of the config in use is gone: %v", err)
		}
	}
	for range 4 { // deaths of the agent
		h.begin()
		h.crash()
	}
	says, config := h.begin()
	if _, err := os.Stat(state); config != local0 || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after four deaths in place is %q, the state is there (%v), and the guard says %q, want the local config without it", config, err, says)
	}
}

// A disk that hangs doesn't hold the unit.
func TestUnitCommandsEndInTime(t *testing.T) {
	err := within(t.Context(), 1, func(context.Context) error {
		<-time.After(2 * time.Second) // whatever its context says; so that a command that waits shows, instead of hanging
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "--timeout=1ns") {
		t.Errorf("a command that hangs ends with %v, want its time-out", err)
	}
}

// Each command says what is missing before it touches anything.
func TestUnitCommandsNeedTheirFlags(t *testing.T) {
	for _, c := range []*cobra.Command{Guard(settings.Parts{}), Stopping(), Ended()} {
		if _, err := execute(t, c); err == nil || !strings.Contains(err.Error(), `--state-dir="": must be an absolute path`) {
			t.Errorf("%s ends with %v, want what is missing", c.Name(), err)
		}
	}
	t.Setenv("SERVICE_RESULT", "")
	if _, err := execute(t, Ended(), "--state-dir="+t.TempDir()); !errors.Is(err, restart.ErrNoEnd) {
		t.Errorf("ended outside a unit ends with %v, want ErrNoEnd", err)
	}
}
