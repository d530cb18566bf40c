// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// marker is the environment variable that the owner sets for each process it starts; their descendants inherit it.
const marker = "BELAY_REAP"

// owned lists the processes that belong to id: by their environment or, as containers have one of their own, by
// their cgroup. It also counts those whose environment the kernel is just setting up, as a program is started in
// them: whose they are can't be told yet. A process that ends during the scan is not an error.
func owned(proc, id string) (pids []int, starting int, err error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, 0, fmt.Errorf("listing processes: %w", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, unseen := os.ReadFile(filepath.Join(proc, entry.Name(), "environ"))
		cgroups, _ := os.ReadFile(filepath.Join(proc, entry.Name(), "cgroup"))
		stat, _ := os.ReadFile(filepath.Join(proc, entry.Name(), "stat"))
		switch {
		case marked(environ, id) || inCgroup(cgroups, id) && !zombie(stat):
			pids = append(pids, pid)
		case unseen == nil && len(environ) == 0 && unready(stat):
			starting++
		}
	}
	return pids, starting, nil
}

// marked says whether an environment, as /proc shows it, holds the marker with this value.
func marked(environ []byte, id string) bool {
	want := []byte(marker + "=" + id)
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(variable, want) {
			return true
		}
	}
	return false
}

// inCgroup says whether one of a process's cgroups, as /proc shows them, lies in one named by id.
func inCgroup(cgroups []byte, id string) bool {
	for line := range strings.Lines(string(cgroups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		for name := range strings.SplitSeq(fields[2], "/") {
			if strings.HasSuffix(name, "-"+id) {
				return true
			}
		}
	}
	return false
}

// zombie says whether a process, as /proc shows its state, has ended and only waits for its parent to look: it
// still has a cgroup, and killing it changes nothing.
func zombie(stat []byte) bool {
	fields := afterName(stat)
	return len(fields) > 0 && fields[0] == "Z"
}

// unready says whether a program is being started in a process: it has memory of its own, but the kernel has not
// yet said where in it the environment ends. An environment that is empty has an end too; a thread of the kernel
// and a process that has ended have no memory.
func unready(stat []byte) bool {
	const vsize, envEnd = 23 - 3, 51 - 3 // as proc(5) counts them, less those up to the name and from one
	fields := afterName(stat)
	return len(fields) > envEnd && fields[vsize] != "0" && fields[envEnd] == "0"
}

// afterName returns the fields of a process's state that follow its name, which may hold anything.
func afterName(stat []byte) []string {
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	return strings.Fields(rest)
}

// unmountBeneath detaches every mount at or beneath dir and makes sure that none is left: what is removed next
// must be the owner's, never what the owner had mounted.
func unmountBeneath(dir string) error {
	mounts, err := mountsBeneath(dir)
	if err != nil {
		return err
	}
	for i := len(mounts) - 1; i >= 0; i-- { // the newest lies on top
		_ = syscall.Unmount(mounts[i], syscall.MNT_DETACH)
	}
	if mounts, err = mountsBeneath(dir); err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("unmounting: %q are still mounted, so nothing is removed", mounts)
	}
	return nil
}

func mountsBeneath(dir string) ([]string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	return mountPoints(string(table), dir), nil
}

// mountPoints returns the mount points at or beneath dir from a table in the form of mountinfo, oldest first.
func mountPoints(table, dir string) []string {
	var points []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescape(fields[4])
		if point == dir || strings.HasPrefix(point, dir+"/") {
			points = append(points, point)
		}
	}
	return points
}

// unescape undoes the kernel's octal spelling of blanks and backslashes in a path.
func unescape(path string) string {
	var out strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '\\' && i+3 < len(path) {
			if code, err := strconv.ParseUint(path[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		out.WriteByte(path[i])
	}
	return out.String()
}
