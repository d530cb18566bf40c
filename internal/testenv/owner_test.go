// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testenv"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/internal/tier"
)

// ownerVariable makes the test binary, started again, own a control plane and end as the value says.
const ownerVariable = "BELAY_TESTENV_OWNER"

// own starts a control plane, prints what belongs to it, and waits for a line on standard input before it ends.
func own(how string) {
	env, err := testenv.New(context.Background(), testenv.Options{With: []testenv.Component{testenv.Scheduler}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var o owned
	for _, name := range []testenv.Component{testenv.Etcd, testenv.APIServer, testenv.Scheduler} {
		o.PIDs = append(o.PIDs, env.Server(name).PID())
	}
	// One that left its parent, session and process group, as daemons do.
	daemon := exec.Command("sh", "-c", "setsid sh -c 'sleep 600 >/dev/null 2>&1 & echo $!' & wait")
	env.Mark(daemon)
	out, err := daemon.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var pid int
	fmt.Sscan(strings.TrimSpace(string(out)), &pid)
	o.PIDs, o.Dir = append(o.PIDs, pid), env.Dir()
	json.NewEncoder(os.Stdout).Encode(o)
	stdin := bufio.NewReader(os.Stdin)
	if _, err := stdin.ReadString('\n'); err != nil {
		os.Exit(1) // the test is gone
	}
	switch how {
	case "panic":
		panic("as a test would")
	case "exit":
		os.Exit(3)
	case "frozen":
		env.APIServer().Pause()
	}
	stdin.ReadString('\n') // until the test kills this process, or is gone itself
	os.Exit(1)
}

// TestNothingOutlivesItsOwner is the promise of the reaper, for each way in which a test binary can end without
// any of its own code running.
func TestNothingOutlivesItsOwner(t *testing.T) {
	ways := []string{"panic", "frozen"}
	if tier.RunsWhole(t) {
		ways = append(ways, "exit", "killed")
	}
	for _, how := range ways {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), ownerVariable+"="+how)
			stdin, line := testproc.Start(t, cmd)
			o := decodeOwned(t, []byte(line))
			checkAlive(t, o)
			fmt.Fprintln(stdin, "go on")
			if how == "killed" || how == "frozen" {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, 30*time.Second, "everything of the dead owner to be gone", func() error { return leftovers(o) })
		})
	}
}

// checkAlive makes sure that the test would see what is left: every process runs and the directory is there.
func checkAlive(t *testing.T, o owned) {
	t.Helper()
	if len(o.PIDs) != 4 || o.Dir == "" {
		t.Fatalf("the owner printed %+v, want four processes and a directory", o)
	}
	for _, pid := range o.PIDs {
		if err := leftovers(owned{PIDs: []int{pid}, Dir: "/nonexistent"}); pid <= 0 || err == nil {
			t.Fatalf("process %d does not run before the owner ends", pid)
		}
	}
	if err := leftovers(owned{Dir: o.Dir}); err == nil {
		t.Fatalf("directory %q is not there before the owner ends", o.Dir)
	}
}
