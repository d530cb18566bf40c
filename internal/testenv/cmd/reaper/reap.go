// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const (
	patience = 20 * time.Second // for processes and cgroups to go after they were told
	settle   = 2 * time.Second  // for the kernel to set up a program that it starts; some sandboxes never say that they have
	retry    = 10 * time.Millisecond
)

// reap removes everything that belongs to id. Each step needs the one before: a mount is busy while a process
// uses it, and a directory must not be removed through a mount.
func reap(id, dir string) error {
	if err := killAll("/proc", id); err != nil {
		return err
	}
	leftovers := errors.Join(removeShimSockets(dir), removeNetworkResults(id), removeLogLinks(dir))
	if err := unmountBeneath(dir); err != nil {
		return errors.Join(leftovers, err)
	}
	return errors.Join(leftovers, removeCgroups(id), undo(filepath.Join(dir, "undo")), removeTree(dir))
}

// killAll kills the processes that belong to id until a whole scan finds none. A process that is being forked
// during a scan is found by the next one: its parent was seen in this one. One that a program is being started in
// has no environment to see for a moment, and is looked at again.
func killAll(proc, id string) error {
	for begun := time.Now(); ; time.Sleep(retry) {
		pids, starting, err := owned(proc, id)
		if err != nil {
			return err
		}
		if len(pids) == 0 && (starting == 0 || time.Since(begun) > settle) {
			return nil
		}
		if time.Since(begun) > patience {
			return fmt.Errorf("killing: processes %v are still there after %s", pids, patience)
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already, or seen again by the next scan
		}
	}
}

// removeTree deletes the owner's directory. The kernel may still be closing files of a killed process, so that
// new entries can appear while the tree is walked.
func removeTree(dir string) error {
	deadline := time.Now().Add(patience)
	for {
		err := os.RemoveAll(dir)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(retry)
	}
}

// removeCgroups deletes the cgroups named by id, in the one hierarchy of version 2 or in each of version 1.
func removeCgroups(id string) error {
	var errs []error
	for _, pattern := range []string{"/sys/fs/cgroup/*-" + id, "/sys/fs/cgroup/*/*-" + id} {
		roots, err := filepath.Glob(pattern)
		if err != nil {
			return fmt.Errorf("listing cgroups: %w", err)
		}
		for _, root := range roots {
			errs = append(errs, removeCgroup(root))
		}
	}
	return errors.Join(errs...)
}

// removeCgroup removes a cgroup and those beneath it, deepest first. One whose last process has just died stays
// busy for a moment.
func removeCgroup(root string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(retry) {
		var dirs []string
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		slices.Reverse(dirs)
		var last error
		for _, dir := range dirs {
			if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				last = &fs.PathError{Op: "removing cgroup", Path: dir, Err: err}
			}
		}
		if last == nil || time.Now().After(deadline) {
			return last
		}
	}
}
