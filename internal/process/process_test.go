// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/process"
)

// patience is for a machine that is busy.
const patience = 30 * time.Second

const roleEnv = "BELAY_PROCESS_TEST_ROLE"

// The test binary is also the parent that is killed.
func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) == "parent" {
		cmd := exec.Command("sleep", "600")
		cmd.Stdout = os.Stdout
		process.DieWithParent(cmd)
		if _, err := process.Start(cmd); err != nil {
			os.Exit(3)
		}
		_, _ = os.Stdout.WriteString("up\n")
		select {}
	}
	os.Exit(m.Run())
}

// newShell returns a command whose processes all hold the write end of the returned pipe. The pipe ends with the last
// of them.
func newShell(t *testing.T, script string) (*exec.Cmd, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	cmd := exec.Command("sh", "-c", script)
	cmd.Stdout = w
	t.Cleanup(func() { _ = w.Close() })
	if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return cmd, r
}

// expectAllGone fails the test if a process still holds the pipe. The test's own end must be closed.
func expectAllGone(t *testing.T, cmd *exec.Cmd, r *os.File) {
	t.Helper()
	_ = cmd.Stdout.(*os.File).Close() //nolint:forcetypeassert // newShell sets it
	if _, err := io.ReadAll(r); err != nil {
		t.Errorf("a process of the group is left: %v", err)
	}
}

func TestNoCommand(t *testing.T) {
	if _, err := process.Start(nil); !errors.Is(err, process.ErrNoCommand) {
		t.Errorf("Start(nil) = %v, want ErrNoCommand", err)
	}
	if err := process.Run(t.Context(), nil); !errors.Is(err, process.ErrNoCommand) {
		t.Errorf("Run(nil) = %v, want ErrNoCommand", err)
	}
	process.DieWithParent(nil)
	if _, err := process.Start(&exec.Cmd{}); err == nil {
		t.Error("Start of an empty command succeeds")
	}
}

func TestRestOfTheGroupIsKilledWhenTheCommandEnds(t *testing.T) {
	cmd, r := newShell(t, "sleep 600 & exit 3")
	err := process.Run(t.Context(), cmd)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("Run = %v, want exit status 3", err)
	}
	expectAllGone(t, cmd, r)
}

func TestGroupIsKilledWithTheContext(t *testing.T) {
	cmd, r := newShell(t, "sleep 600 & echo up; wait")
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- process.Run(ctx, cmd) }()
	if line, err := bufio.NewReader(r).ReadString('\n'); line != "up\n" {
		t.Fatalf("the command says %q, %v", line, err)
	}
	cancel()
	if err := <-result; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Run = %v, want an end by SIGKILL", err)
	}
	expectAllGone(t, cmd, r)
}

func TestRunAfterTheContextStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cmd := exec.Command("true")
	if err := process.Run(ctx, cmd); !errors.Is(err, context.Canceled) || cmd.Process != nil {
		t.Errorf("Run = %v with process %v, want context.Canceled and none", err, cmd.Process)
	}
}

func TestSignalReachesTheGroupAndNotItsSuccessor(t *testing.T) {
	cmd, r := newShell(t, "sleep 600 & echo up; wait")
	g, err := process.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(r).ReadString('\n'); line != "up\n" {
		t.Fatalf("the command says %q, %v", line, err)
	}
	if pgid, err := syscall.Getpgid(g.PID()); pgid != g.PID() || err != nil {
		t.Errorf("the group of %d is %d, %v", g.PID(), pgid, err)
	}
	if g.Err() != nil || g.State() != nil || g.Ran() != 0 {
		t.Errorf("a running command ended as %v, %v after %v", g.Err(), g.State(), g.Ran())
	}
	g.Signal(syscall.SIGTERM)
	<-g.Done()
	if g.Err() == nil || g.State() == nil || g.State().Success() || g.Ran() <= 0 {
		t.Errorf("a killed command ended as %v, %v after %v", g.Err(), g.State(), g.Ran())
	}
	expectAllGone(t, cmd, r)
	g.Signal(syscall.SIGTERM) // the number of the group is free
}

// A session's leader leads its group already; setpgid would fail.
func TestSessionLeaderStarts(t *testing.T) {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := process.Run(t.Context(), cmd); err != nil {
		t.Errorf("Run of a session leader = %v", err)
	}
}

// Output that the rest of the group holds open must not delay the end: the group is killed before Wait reads to the
// end.
func TestOutputOfTheRestDoesNotDelayTheEnd(t *testing.T) {
	var out strings.Builder
	cmd := exec.Command("sh", "-c", "sleep 600 & echo $!")
	cmd.Stdout = &out
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := process.Run(ctx, cmd); err != nil {
		t.Fatalf("Run = %v", err)
	}
	if _, err := strconv.Atoi(strings.TrimSpace(out.String())); err != nil {
		t.Errorf("the output is %q: %v", out.String(), err)
	}
}

func TestCommandDiesWithItsParent(t *testing.T) {
	parent, r := newShell(t, "")
	parent.Path, parent.Args = os.Args[0], os.Args[:1]
	parent.Env = append(os.Environ(), roleEnv+"=parent")
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(r).ReadString('\n'); line != "up\n" {
		t.Errorf("the parent says %q, %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = parent.Wait() // it was killed
	expectAllGone(t, parent, r)
}
