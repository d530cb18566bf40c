// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// The agent of a fleet whose kubelets run at most 110 pods, and whose nodes are updated by a program of the fleet's own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/belayproject/belay/examples/agent/app"
	"github.com/belayproject/belay/rollout/nodeagent"
)

type rules struct{}

func (rules) Validate(_ context.Context, c *app.Config) error {
	if c.MaxPods > 110 {
		return errors.New("maxPods must be at most 110")
	}
	return nil
}

func main() {
	updater, err := nodeagent.Exec{
		Observe: []string{"/opt/acme/update", "observe"}, Apply: []string{"/opt/acme/update", "apply"}, Verify: []string{"/opt/acme/update", "verify"},
	}.NewUpdater()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(app.Run(app.NewCommand(app.WithUpdater("acme", updater), app.WithValidator(rules{}))))
}
