// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/lkg"
)

// text is a codec whose configs are any text but "invalid". They tolerate one unexplained restart.
type text struct{}

func (text) Decode(key string, o configsync.Object) (string, lkg.Limits, error) {
	if o.Data[key] == "invalid" {
		return "", lkg.Limits{}, errors.New("not a text")
	}
	return o.Data[key], lkg.Limits{CrashLoopThreshold: 1}, nil
}

// env is the environment of an ExecStopPost command.
func env(result, code, status string) func(string) string {
	set := map[string]string{"SERVICE_RESULT": result, "EXIT_CODE": code, "EXIT_STATUS": status}
	return func(name string) string { return set[name] }
}

// A process that takes up a config by being started again: Syncer.Run returns the Restarter's error, and main exits with its code.
func ExampleExit() {
	restarter := restart.Exit{Code: 75} // for a unit with Restart=on-failure

	err := restarter.Restart(context.Background(), configsync.Change{Kind: configsync.Adopt, Why: "a new config is assigned"})
	fmt.Println(err)
	fmt.Println("os.Exit would get", restart.Code(err))
	// Output:
	// exit with code 75 to take up another config: a new config is assigned
	// os.Exit would get 75
}

// An agent that runs a child. Each start is told how the child before it ended; that is what Syncer.Bootstrap wants to know.
func ExampleSupervisor() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	starts := 0
	supervisor, err := restart.NewSupervisor(restart.Options{
		BackoffMin: time.Millisecond,
		Command: func(_ context.Context, last lkg.Exit) (*exec.Cmd, error) {
			starts++
			if starts == 3 {
				cancel() // enough for an example
			}
			fmt.Printf("start %d, the one before: %q\n", starts, last.Kind)
			return exec.Command("sh", "-c", "exit 1"), nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(supervisor.Run(ctx))
	// Output:
	// start 1, the one before: ""
	// start 2, the one before: "Crash"
	// start 3, the one before: "Crash"
	// <nil>
}

// Three commands of one unit: ExecStartPre counts the start and puts the config in place, ExecStopPost notes how the main process ended,
// and the next ExecStartPre knows. A main process that dies before it reads anything is counted like any other.
func ExampleGuard() {
	ctx := context.Background()
	notes := &configsynctest.Disk{}   // a checkpoint.Store of its own
	records := &configsynctest.Disk{} // the checkpoint.Store of the agent

	execStartPre := func(u restart.Unit) error {
		_, err := restart.Guard(ctx, configsync.Options[string]{
			Version: "v1.0.0", Key: "config", Codec: text{}, Store: records, Default: func() string { return "the built-in config" },
		}, u, func(_ context.Context, a configsync.Active[string]) error {
			fmt.Println("in place:", a.Config)
			return nil
		})
		return err
	}
	execStopPost := func(u restart.Unit) error {
		end, err := restart.EndFromEnv(env("oom-kill", "killed", "KILL")) // os.Getenv, under systemd
		return errors.Join(err, u.Ended(ctx, end))
	}

	unit := restart.Unit{Store: notes, Boot: "boot-1", Invocation: "1"} // restart.OwnUnit, under systemd
	fmt.Println(execStartPre(unit), execStopPost(unit))
	unit.Invocation = "2"
	fmt.Println(execStartPre(unit))
	st, err := lkg.Load(ctx, records, "v1.0.0")
	for _, start := range st.Starts {
		fmt.Printf("%s: %s\n", start.Cause, start.Detail)
	}
	fmt.Println(err)
	// Output:
	// in place: the built-in config
	// <nil> <nil>
	// in place: the built-in config
	// <nil>
	// Unknown: first start on record
	// Crash: killed by SIGKILL, systemd says oom-kill
	// <nil>
}
