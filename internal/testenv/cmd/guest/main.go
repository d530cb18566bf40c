// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func main() {
	err := run(context.Background())
	fmt.Fprintln(os.Stderr, "belay: guest:", err)
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) // the kernel panics otherwise, as its first process has ended
}

// run comes back with an error only.
func run(ctx context.Context) error {
	for _, step := range []func() error{mountKernel, loadModules, bringUpNetwork} {
		if err := step(); err != nil {
			return err
		}
	}
	s, err := readSettings()
	if err != nil {
		return err
	}
	d, err := openDisk(s)
	if err != nil {
		return err
	}
	a, err := newAgent(s, d)
	if err != nil {
		return err
	}
	return a.run(ctx)
}
