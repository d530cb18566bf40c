// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart_test

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/lkg"
)

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
