// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import (
	"os"
	"os/exec"
)

// setProcessGroup does nothing: this system has no process groups.
func setProcessGroup(*exec.Cmd) {}

// signalGroup signals the command alone, which may have ended.
func signalGroup(leader *os.Process, sig os.Signal) { _ = leader.Signal(sig) }
