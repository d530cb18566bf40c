// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testproc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Start starts a command and waits for the first line that it writes, which it returns without its end. The process ends with the
// test at the latest.
func Start(t testing.TB, cmd *exec.Cmd) (stdin io.WriteCloser, line string) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	line, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%q has written %q before its first line was whole: %v", cmd.Args, line, err)
	}
	return stdin, strings.TrimSpace(line)
}

// State is the letter that the kernel has for the state of a process. It is empty for one that is gone, and for one that has ended
// and that nobody has waited for yet, as in a container without an init.
func State(pid int) string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:]) // the name may have parentheses
	state, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if state == "Z" {
		return ""
	}
	return state
}

// Ended returns an error that names the process while it is still there.
func Ended(pid int) error {
	if state := State(pid); state != "" {
		return fmt.Errorf("process %d is in state %s", pid, state)
	}
	return nil
}

// Naming lists the processes whose environment, command line or cgroup has a text, but for this one and those that have ended.
func Naming(text string) []string {
	var found []string
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() || State(pid) == "" {
			continue
		}
		for _, file := range []string{"environ", "cmdline", "cgroup"} {
			data, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), file)) // it may have ended
			if strings.Contains(string(data), text) {
				name, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "comm"))
				found = append(found, fmt.Sprintf("process %d %s", pid, strings.TrimSpace(string(name))))
				break
			}
		}
	}
	return found
}
