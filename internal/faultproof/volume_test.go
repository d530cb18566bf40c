// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/tier"
)

// kind is a file system: how it is made, and whether it takes the shutdown ioctl.
type kind struct {
	name  string
	size  int64
	mkfs  []string
	shuts bool
}

var (
	ext4 = kind{"ext4", 64 << 20, []string{"mkfs.ext4", "-q", "-F", "-b", "4096", "-N", "2048", "-J", "size=4",
		"-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"}, true}
	xfs   = kind{"xfs", 300 << 20, []string{"mkfs.xfs", "-q", "-f", "-K"}, true}
	btrfs = kind{"btrfs", 128 << 20, []string{"mkfs.btrfs", "-q", "-f", "-K", "-m", "single", "-d", "single"}, false}
)

// kinds gives the file systems of this run: ext4 alone where a part of the work is done.
func kinds(all ...kind) []kind {
	if whole() {
		return all
	}
	return []kind{ext4}
}

// eachKind runs a test on each file system, and skips it, with the reason, where that can not be.
func eachKind(t *testing.T, all []kind, test func(t *testing.T, k kind)) {
	for _, k := range kinds(all...) {
		t.Run(k.name, func(t *testing.T) {
			needMounts(t)
			if _, err := exec.LookPath(k.mkfs[0]); err != nil {
				t.Skipf("%s needs %s: %v", k.name, k.mkfs[0], err)
			}
			test(t, k)
		})
	}
}

func needMounts(t *testing.T) {
	t.Helper()
	tier.Require(t)
	if why := os.Getenv(reasonVar); why != "" {
		t.Skipf("mounting needs root, and the right to mount: %s", why)
	}
	for _, dev := range []string{"/dev/loop-control", "/dev/fuse"} {
		f, err := os.OpenFile(dev, os.O_RDWR, 0)
		if err != nil {
			t.Skipf("a disk for the tests needs loop devices and FUSE: %v", err)
		}
		must(t, f.Close())
	}
}

// scratch makes a directory on the file system in memory, which is empty again after the test.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv(dirVar), "t-") //nolint:usetesting // t.TempDir is on another file system
	must(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

var templates sync.Map // of pages, by the command that made them

// template gives the pages of a new, empty file system.
func template(t *testing.T, k kind) pages {
	t.Helper()
	if p, ok := templates.Load(fmt.Sprint(k.mkfs)); ok {
		return p.(pages)
	}
	file := filepath.Join(scratch(t), "template")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Truncate(file, k.size))
	if out, err := exec.Command(k.mkfs[0], append(k.mkfs[1:], file)...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", k.mkfs, err, out)
	}
	p, err := readPages(file)
	must(t, err)
	templates.Store(fmt.Sprint(k.mkfs), p)
	return p
}

// volume is a file system in a file, and the place where it is mounted.
type volume struct {
	kind
	file, dir string
}

// newVolume makes a volume, which is not mounted. It is unmounted after the test.
func newVolume(t *testing.T, k kind) *volume {
	t.Helper()
	base := scratch(t)
	v := &volume{kind: k, file: filepath.Join(base, "image"), dir: filepath.Join(base, "m")}
	must(t, os.Mkdir(v.dir, 0o755))
	must(t, template(t, k).write(v.file, k.size))
	t.Cleanup(func() {
		for unix.Unmount(v.dir, unix.MNT_DETACH) == nil {
		}
	})
	return v
}

func (v *volume) store() string { return filepath.Join(v.dir, "store") }

// mount attaches a loop device, which goes by itself when its last user is gone.
func (v *volume) mount() error {
	dev, err := attach(v.file)
	if err != nil {
		return err
	}
	defer dev.Close()
	options := ""
	if v.name == xfs.name {
		options = "nouuid" // so that what one failed test keeps open fails no other
	}
	if err := unix.Mount(dev.Name(), v.dir, v.name, 0, options); err != nil {
		return fmt.Errorf("mounting %s: %w", v.name, err)
	}
	return nil
}

// unmount waits for those who still close what they had open. What a library leaves open after an error, as renameio does where it can
// not change a mode, the collector closes.
func (v *volume) unmount() error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := unix.Unmount(v.dir, 0)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("unmounting %s: %w", v.name, err)
		}
		runtime.GC()
		<-time.After(time.Millisecond)
	}
	if v.name == btrfs.name {
		forgetBtrfs()
	}
	return nil
}

// forgetBtrfs makes the kernel forget the devices of file systems that are not mounted: an image of an earlier point of the same
// one would be refused for its older number.
func forgetBtrfs() {
	fd, err := unix.Open("/dev/btrfs-control", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	const forget = 0x50009405 // BTRFS_IOC_FORGET_DEV, with no name: all
	var args [4096]byte
	_ = ioctl(fd, forget, &args[0])
}

func attach(file string) (*os.File, error) {
	back, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer back.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for range 100 {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("asking for a loop device: %w", err)
		}
		dev, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		config := unix.LoopConfig{Fd: uint32(back.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		err = unix.IoctlLoopConfigure(int(dev.Fd()), &config)
		if err == nil {
			return dev, nil
		}
		dev.Close()
		if !errors.Is(err, unix.EBUSY) { // somebody else was faster
			return nil, fmt.Errorf("attaching %q to %s: %w", file, dev.Name(), err)
		}
	}
	return nil, errors.New("no loop device is free")
}

// breaker is what cuts the power of a mounted volume.
type breaker struct{ fd int }

func (v *volume) breaker() (*breaker, error) {
	fd, err := unix.Open(v.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", v.dir, err)
	}
	return &breaker{fd}, nil
}

// cut ends the file system at once: what is not on the disk by now, its log included, never will be.
func (b *breaker) cut() error {
	const shutdown, noLogFlush = 0x8004587d, 2
	err := unix.IoctlSetPointerInt(b.fd, shutdown, noLogFlush)
	if closing := unix.Close(b.fd); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("cutting the power: %w", err)
	}
	return nil
}
