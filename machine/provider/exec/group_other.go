// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package exec

import (
	"context"
	osexec "os/exec"
)

// inGroup runs a command and kills it when ctx ends. What it has started may go on.
func inGroup(ctx context.Context, cmd *osexec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // it may have ended
	defer stop()
	return cmd.Wait()
}
