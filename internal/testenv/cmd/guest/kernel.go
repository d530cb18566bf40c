// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The addresses of qemu's user mode network: of the guest, and of the host, where the host's loopback answers.
const (
	ownAddress  = "10.0.2.15"
	hostAddress = "10.0.2.2"
	link        = "eth0"
)

// patience is how long a device may take to appear.
const patience = 20 * time.Second

// mountKernel mounts what the kernel shows of itself.
func mountKernel() error {
	for _, m := range []struct{ source, target, kind string }{{"proc", "/proc", "proc"}, {"sysfs", "/sys", "sysfs"}, {"devtmpfs", "/dev", "devtmpfs"}} {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.source, m.target, m.kind, 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mounting %q: %w", m.target, err)
		}
	}
	return nil
}

// loadModules loads the modules of the initial file system, in the order of their list.
func loadModules() error {
	list, err := os.ReadFile("/modules/order")
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(list)) {
		if err := loadModule(filepath.Join("/modules", name)); err != nil {
			return err
		}
	}
	return nil
}

func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // only read
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("loading module %q: %w", path, err)
	}
	return nil
}

// wait polls for something that the kernel does by itself.
func wait(what string, there func() bool) error {
	for end := time.Now().Add(patience); !there(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("there is no %s after %s", what, patience)
		}
	}
	return nil
}

// bringUpNetwork gives the one interface its address. The host is on the same link, so that no route is needed.
func bringUpNetwork() error {
	if err := wait("network interface "+link, func() bool { _, err := os.Stat("/sys/class/net/" + link); return err == nil }); err != nil {
		return err
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer func() { _ = unix.Close(socket) }() // it carried requests only
	for _, set := range []struct {
		request uint
		address string
	}{{unix.SIOCSIFADDR, ownAddress}, {unix.SIOCSIFNETMASK, "255.255.255.0"}} {
		if err := setAddress(socket, set.request, set.address); err != nil {
			return err
		}
	}
	up, err := unix.NewIfreq(link)
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, up); err != nil {
		return fmt.Errorf("bringing %s up: %w", link, err)
	}
	return nil
}

func setAddress(socket int, request uint, address string) error {
	r, err := unix.NewIfreq(link)
	if err != nil {
		return err
	}
	four := netip.MustParseAddr(address).As4()
	if err := r.SetInet4Addr(four[:]); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, request, r); err != nil {
		return fmt.Errorf("giving %s the address %s: %w", link, address, err)
	}
	return nil
}

// device returns the path of the disk with a serial number.
func device(serial string) (string, error) {
	path := ""
	err := wait("disk "+serial, func() bool {
		found, _ := filepath.Glob("/sys/block/vd*/serial") // the pattern is right
		for _, name := range found {
			if text, err := os.ReadFile(name); err == nil && strings.TrimRight(string(text), "\x00\n ") == serial {
				path = filepath.Join("/dev", filepath.Base(filepath.Dir(name)))
			}
		}
		_, err := os.Stat(path)
		return path != "" && err == nil
	})
	return path, err
}
