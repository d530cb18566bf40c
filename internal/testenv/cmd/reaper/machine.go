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
	"regexp"
	"slices"
	"strings"
)

var shimSocket = regexp.MustCompile(`^/run/containerd/s/[0-9a-f]{64}$`)

// removeShimSockets deletes the sockets of containerd's shims, which lie outside of containerd's own directories
// and which a killed shim leaves. containerd records the address of each beside its container.
func removeShimSockets(dir string) error {
	pattern := filepath.Join(dir, "node", "containerd", "state", "io.containerd.runtime.v2.task", "*", "*", "address")
	files, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("listing shims: %w", err)
	}
	var errs []error
	for _, file := range files {
		data, err := os.ReadFile(file)
		socket := strings.TrimPrefix(strings.TrimSpace(string(data)), "unix://")
		if err != nil || !shimSocket.MatchString(socket) {
			continue
		}
		if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("removing a shim's socket: %w", err))
		}
	}
	return errors.Join(errs...)
}

// removeNetworkResults deletes what the CNI library keeps of attached containers, by the network's name.
func removeNetworkResults(id string) error {
	files, err := filepath.Glob("/var/lib/cni/results/*-" + id + "-*")
	if err != nil {
		return fmt.Errorf("listing network results: %w", err)
	}
	var errs []error
	for _, file := range files {
		errs = append(errs, os.Remove(file))
	}
	return errors.Join(errs...)
}

// removeLogLinks deletes the links to containers' logs beneath dir that the kubelet makes at a fixed place.
func removeLogLinks(dir string) error {
	links, err := filepath.Glob("/var/log/containers/*.log")
	if err != nil {
		return fmt.Errorf("listing log links: %w", err)
	}
	var errs []error
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir+"/") {
			errs = append(errs, os.Remove(link))
		}
	}
	return errors.Join(errs...)
}

// restorable limits what an undo file can name, so that a damaged one does no harm.
var restorable = regexp.MustCompile(`^(/var/lib/kubelet|/var/lib/cni|/var/log/containers|/run/containerd)(/[a-z-]+)?$`)

// undo brings places of the machine back to how the owner found them. The file has one line for each: "remove" and
// a directory that was absent, parents first, or "sysctl", a name and its value. There is none where the owner ran
// no kubelet.
func undo(file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restoring the machine: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	slices.Reverse(lines) // children before their parents
	var errs []error
	for _, line := range lines {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && fields[0] == "remove" && restorable.MatchString(fields[1]):
			errs = append(errs, removePlace(fields[1]))
		case len(fields) == 3 && fields[0] == "sysctl" && filepath.IsLocal(fields[1]):
			errs = append(errs, restoreSetting(filepath.Join("/proc/sys", fields[1]), fields[2]))
		default:
			errs = append(errs, fmt.Errorf("restoring the machine: line %q is not understood", line))
		}
	}
	return errors.Join(errs...)
}

// removePlace deletes a directory with the files in it, but no directory beneath: those that were made with it
// have lines of their own, and others are somebody else's.
func removePlace(dir string) error {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if !entry.IsDir() {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("restoring the machine: %w", err)
	}
	return nil
}

// restoreSetting writes a kernel setting unless it has the value: writing the same can need more rights.
func restoreSetting(path, value string) error {
	now, err := os.ReadFile(path)
	if err == nil && strings.TrimSpace(string(now)) == value {
		return nil
	}
	if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
		return fmt.Errorf("restoring the machine: %w", err)
	}
	return nil
}
