// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// ioctl makes a call for which the system package has no function.
func ioctl(fd int, request uintptr, arg *byte) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(arg))); errno != 0 {
		return errno
	}
	return nil
}
