// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
)

const deadline = 20 * time.Second

// TestMain plays the demo that starts a process and is killed, where a test asks for it.
func TestMain(m *testing.M) {
	if os.Getenv("BELAY_TEST_ROLE") != "demo" {
		os.Exit(m.Run())
	}
	runtime.LockOSThread()
	cmd := exec.Command("/bin/sh", "-c", "echo $$; exec sleep 300")
	cmd.Stdout = os.Stdout
	if _, err := Start("the process", cmd); err != nil {
		os.Exit(1)
	}
	select {}
}

func TestProcessesEndWithAKilledDemo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with the thread that started it")
	}
	demo := exec.Command(os.Args[0])
	demo.Env = append(os.Environ(), "BELAY_TEST_ROLE=demo")
	_, line := testproc.Start(t, demo)
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	if testproc.Ended(pid) == nil {
		t.Fatalf("process %d has ended before the demo was killed", pid)
	}
	if err := demo.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = demo.Wait()
	waitGone(t, pid)
}

// start runs a shell script that prints a line when it is ready, and returns that line.
func start(t *testing.T, script string) (*Process, string) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Stdout = write
	p, err := Start("the script", cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(t.Context(), 0) })
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return p, strings.TrimSpace(line)
}

func TestStop(t *testing.T) {
	for _, c := range []struct {
		name, script, want string
		grace              time.Duration
	}{
		{"ends in order", `trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done`, "", deadline},
		{"ends with a status", `trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done`, "exit status 3", deadline},
		{"does not end", `trap '' TERM; echo ready; while :; do sleep 0.01; done`,
			"did not end within 50ms and was killed", 50 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _ := start(t, c.script)
			if err := p.EndError(); err != nil {
				t.Errorf("EndError while it runs: got %v, want nil", err)
			}
			err := p.Stop(t.Context(), c.grace)
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("Stop: got %v, want an error with %q", err, c.want)
			}
			if p.EndError() == nil {
				t.Error("EndError after Stop: got nil, want an error")
			}
		})
	}
}

func TestStopLeavesNothingOfTheGroup(t *testing.T) {
	p, line := start(t, `sleep 300 & echo $!; wait`)
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Stop(t.Context(), deadline)
	waitGone(t, pid)
}

func waitGone(t *testing.T, pid int) {
	t.Helper()
	if err := testproc.Poll(deadline, func() error { return testproc.Ended(pid) }); err != nil {
		t.Fatal(err)
	}
}

func TestStartNamesWhatIsMissing(t *testing.T) {
	_, err := Start("the agent of n1", exec.Command("/nowhere/agent"))
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "the agent of n1") {
		t.Errorf("got %v, want one that wraps %v and names the agent", err, os.ErrNotExist)
	}
}
