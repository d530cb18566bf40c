// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package proc

import "syscall"

// attributes make a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
