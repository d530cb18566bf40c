// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodetier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const cgroupRoot = "/sys/fs/cgroup"

// makeCgroup makes the cgroup that holds all pods.
func (t *Tier) makeCgroup(context.Context) error { return MakeCgroup(t.cgroup) }

// MakeCgroup makes a cgroup that a kubelet may have for its cgroupRoot, in every hierarchy there is: the kubelet refuses to start beneath one that
// does not exist. One whose name ends with "-" and the identifier of a control plane is removed with that.
func MakeCgroup(name string) error {
	roots := []string{cgroupRoot}
	if unified() {
		if err := delegate(); err != nil {
			return err
		}
	} else {
		var err error
		if roots, err = hierarchies(); err != nil {
			return err
		}
	}
	for _, root := range roots {
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { // two names of one hierarchy
			return fmt.Errorf("making a cgroup: %w", err)
		}
		if err := inheritCPUSet(root, dir); err != nil {
			return err
		}
	}
	return nil
}

// Cgroups lists the directories of a cgroup of that name and of those in it, each after those beneath it.
func Cgroups(name string) ([]string, error) {
	var all []string
	for _, pattern := range []string{cgroupRoot, filepath.Join(cgroupRoot, "*")} {
		roots, err := filepath.Glob(filepath.Join(pattern, name))
		if err != nil {
			return nil, fmt.Errorf("listing cgroups: %w", err)
		}
		for _, root := range roots {
			// What goes away meanwhile is not there any more.
			_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					all = append(all, path)
				}
				return nil
			})
		}
	}
	slices.Reverse(all)
	return all, nil
}

// unified says whether the machine has the one hierarchy of version 2.
func unified() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err == nil
}

// hierarchies lists the mounted ones of version 1, and the one of version 2 that a hybrid machine has besides.
func hierarchies() ([]string, error) {
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("listing cgroup hierarchies: %w", err)
	}
	var roots []string
	for _, entry := range entries {
		root := filepath.Join(cgroupRoot, entry.Name())
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err == nil {
			roots = append(roots, root)
		}
	}
	return roots, nil
}

// delegate lets children of the root of version 2 use every controller, as systemd does on most machines.
func delegate() error {
	controllers, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("listing cgroup controllers: %w", err)
	}
	control := filepath.Join(cgroupRoot, "cgroup.subtree_control")
	for _, controller := range strings.Fields(string(controllers)) {
		if err := os.WriteFile(control, []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("delegating cgroup controller %q: %w", controller, err)
		}
	}
	return nil
}

// inheritCPUSet gives a new cpuset of version 1 the CPUs and memory nodes of its parent: it starts with none, and
// nothing can run in it then.
func inheritCPUSet(root, dir string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // another controller, or the root of version 2
		}
		if err := os.WriteFile(filepath.Join(dir, name), bytes.TrimSpace(value), 0o644); err != nil {
			return fmt.Errorf("setting up a cpuset: %w", err)
		}
	}
	return nil
}
