// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodetier

import "syscall"

// bindShared mounts a directory on itself with shared propagation.
func bindShared(dir string) error {
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	return syscall.Mount("", dir, "", syscall.MS_SHARED|syscall.MS_REC, "")
}
