// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testproc

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

const deadline = 20 * time.Second

// What is looked for is seen while it is there, and not after.
func TestProcessIsSeenUntilItsEnd(t *testing.T) {
	mark := "BELAY_TESTPROC=" + strconv.FormatInt(time.Now().UnixNano(), 36)
	cmd := exec.Command("/bin/sh", "-c", "echo $$; read line; exec sleep 300")
	cmd.Env = append(os.Environ(), mark)
	stdin, line := Start(t, cmd)
	pid, err := strconv.Atoi(line)
	if err != nil || pid != cmd.Process.Pid {
		t.Fatalf("first line: got %q, want the number %d", line, cmd.Process.Pid)
	}
	if err := Ended(pid); err == nil || !strings.Contains(err.Error(), line) {
		t.Errorf("while it runs: got %v, want an error with %s", err, line)
	}
	if got := Naming(mark); len(got) != 1 || !strings.HasPrefix(got[0], "process "+line+" ") {
		t.Errorf("while it runs: got %q, want process %s alone", got, line)
	}
	if _, err := stdin.Write([]byte("go on\n")); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := Poll(deadline, func() error { return Ended(pid) }); err != nil { // nobody has waited for it
		t.Error(err)
	}
	if got := Naming(mark); len(got) != 0 {
		t.Errorf("after its end: got %q, want none", got)
	}
}

func TestNamingLeavesThisProcessOut(t *testing.T) {
	for _, p := range Naming(os.Args[0]) {
		if strings.HasPrefix(p, "process "+strconv.Itoa(os.Getpid())+" ") {
			t.Errorf("got %q among them", p)
		}
	}
}

func TestPollGivesTheLastError(t *testing.T) {
	n := 0
	if err := Poll(deadline, func() error {
		if n++; n < 3 {
			return errors.New("not yet")
		}
		return nil
	}); err != nil || n != 3 {
		t.Errorf("got %v after %d calls, want nil after 3", err, n)
	}
	boom := errors.New("boom")
	if err := Poll(time.Millisecond, func() error { return boom }); !errors.Is(err, boom) {
		t.Errorf("got %v, want %v", err, boom)
	}
}
