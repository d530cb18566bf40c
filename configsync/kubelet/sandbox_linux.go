// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A sandbox keeps the effects of a kubelet off the host: its mounts, network and cgroups are its own.
type sandbox struct {
	dir         string   // of the sandbox, on the host
	cgroupNames []string // that the config names
	sockets     []string // paths at which the stand-in runtime serves too
	cgroups     []string // made on the host, to be removed
	locks       []*os.File
}

// canIsolate says why a kubelet can't be kept apart here. Namespaces and mounts need root.
func canIsolate() error {
	if os.Geteuid() != 0 {
		return errors.New("that needs root")
	}
	return nil
}

const cgroupRoot = "/sys/fs/cgroup"

// hidden are the sockets and directories of the host that a kubelet would change something through: systemd sets up
// cgroups and delays shutdowns, and a kubelet removes the sockets of device plugins when it starts.
var (
	hiddenSockets = []string{"/run/systemd/private", "/run/dbus/system_bus_socket", "/run/systemd/notify"}
	hiddenDirs    = []string{"/var/lib/kubelet/device-plugins", "/var/lib/kubelet/plugins_registry",
		"/var/lib/kubelet/pod-resources"}
)

// prepare gives the calling thread namespaces of its own and arranges them. It must be on a thread that ends with the
// sandbox.
func (s *sandbox) prepare() error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC); err != nil {
		return fmt.Errorf("making namespaces: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts private: %w", err)
	}
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("setting up the loopback interface: %w", err)
	}
	for _, socket := range hiddenSockets {
		if err := unix.Mount("/dev/null", socket, "", unix.MS_BIND, ""); err != nil && !isAbsent(err) {
			return fmt.Errorf("hiding %q: %w", socket, err)
		}
	}
	for _, dir := range hiddenDirs {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil && !isAbsent(err) {
			return fmt.Errorf("hiding %q: %w", dir, err)
		}
	}
	for _, socket := range s.sockets {
		if err := unix.Mount(filepath.Join(s.dir, "cri.sock"), socket, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("standing in for the runtime: %w", err)
		}
	}
	return s.bindCgroups()
}

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) }

// raiseLoopback brings up the only interface of a new network.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// cgroupHierarchies are the mounts of cgroups: one of version 2, or one for each controller of version 1.
func cgroupHierarchies() ([]string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &st); err != nil {
		return nil, err
	}
	if st.Type == unix.CGROUP2_SUPER_MAGIC {
		return []string{cgroupRoot}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	var all []string
	for _, e := range entries {
		dir := filepath.Join(cgroupRoot, e.Name())
		if e.IsDir() && unix.Statfs(dir, &st) == nil &&
			(st.Type == unix.CGROUP_SUPER_MAGIC || st.Type == unix.CGROUP2_SUPER_MAGIC) {
			all = append(all, dir)
		}
	}
	return all, err
}

// makeCgroups makes a cgroup in each hierarchy, and in it those of the host that the config names.
func (s *sandbox) makeCgroups() error {
	all, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		removeLeftovers(h, sandboxPrefix, removeTree)
		dir, err := s.makeTopCgroup(h)
		if err != nil {
			return err
		}
		s.cgroups = append(s.cgroups, dir)
		setUpCgroup(h, dir)
		for _, name := range s.cgroupNames {
			if err := mirrorCgroup(h, dir, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeTopCgroup makes and locks the cgroup of the sandbox in a hierarchy. A hierarchy may be mounted twice.
func (s *sandbox) makeTopCgroup(hierarchy string) (dir string, err error) {
	for _, made := range s.cgroups {
		if dir = filepath.Join(hierarchy, filepath.Base(made)); isSame(made, dir) {
			return dir, nil
		}
	}
	name, tries := filepath.Base(s.dir), 0
	dir, lock, err := makeAndLock(func() (string, error) {
		dir := filepath.Join(hierarchy, name+strings.Repeat("0", tries)) // findMade asks for digits
		tries++
		return dir, os.Mkdir(dir, 0o700)
	})
	if err == nil {
		s.locks = append(s.locks, lock)
	}
	return dir, err
}

func makeCgroup(above, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	setUpCgroup(above, dir)
	return nil
}

// setUpCgroup gives a cgroup the CPUs, memory nodes and controllers of the one above it.
func setUpCgroup(above, dir string) {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // version 1: empty sets can't be used
		if value, err := os.ReadFile(filepath.Join(above, file)); err == nil && len(strings.TrimSpace(string(value))) > 0 {
			_ = os.WriteFile(filepath.Join(dir, file), value, 0) // version 2 inherits
		}
	}
	if controllers, err := os.ReadFile(filepath.Join(above, "cgroup.controllers")); err == nil {
		for _, c := range strings.Fields(string(controllers)) {
			_ = os.WriteFile(filepath.Join(above, "cgroup.subtree_control"), []byte("+"+c),
				0) // one that can't be is missed by the kubelet too
		}
	}
}

func mirrorCgroup(hierarchy, dir, name string) error {
	path := hierarchy
	for part := range strings.SplitSeq(strings.Trim(filepath.Clean("/"+name), "/"), "/") {
		above := dir
		path, dir = filepath.Join(path, part), filepath.Join(dir, part)
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return nil
		}
		if err := makeCgroup(above, dir); err != nil {
			return err
		}
	}
	return nil
}

// bindCgroups shows the cgroups of the sandbox in place of the host's.
func (s *sandbox) bindCgroups() error {
	for _, dir := range s.cgroups {
		if err := unix.Mount(dir, filepath.Dir(dir), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("showing the cgroups of the sandbox: %w", err)
		}
	}
	return nil
}

// removeLeftovers removes what processes that were killed have left in a directory. A directory whose lock can be had
// is a leftover, or is just being made: makeAndLock makes another then. The process ID in a name is for people: it says
// nothing about a process of another PID namespace.
func removeLeftovers(in, prefix string, remove func(string) error) {
	for _, dir := range findMade(in, prefix) {
		if lock, err := lockDir(dir); err == nil {
			_ = remove(dir) // the next run tries again
			_ = lock.Close()
		}
	}
}

// lockDir locks a directory for as long as the file that it returns is open. It does not wait. The error wraps errTaken
// if another process has the lock, or has removed the directory.
func lockDir(dir string) (*os.File, error) {
	// Other users may write in a directory for temporary files: a link is not followed, and a pipe is not waited for.
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err == nil {
		err = lockFile(f, dir)
	}
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK):
		err = fmt.Errorf("%w: %w", errTaken, err)
	}
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return nil, fmt.Errorf("locking %q: %w", dir, err)
}

// lockFile locks f. It returns fs.ErrNotExist if dir is not f any more.
func lockFile(f *os.File, dir string) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	found, err := os.Lstat(dir)
	if err == nil && !os.SameFile(opened, found) {
		err = fs.ErrNotExist
	}
	return err
}

// isSame reports whether two paths name one directory.
func isSame(a, b string) bool {
	first, err := os.Stat(a)
	second, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(first, second)
}

// findMade returns the directories that makeLocked or a sandbox has made.
func findMade(in, prefix string) (made []string) {
	all, err := filepath.Glob(filepath.Join(in, prefix+"*-*"))
	if err != nil {
		return nil
	}
	for _, dir := range all {
		id, random, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		_, err := strconv.ParseUint(id, 10, 22) // as large as a process ID can be
		if _, bad := strconv.ParseUint(random, 10, 64); err == nil && bad == nil {
			made = append(made, dir)
		}
	}
	return made
}

// removeCgroups removes what the kubelet has made in its cgroups, and them. No process is left in any.
func (s *sandbox) removeCgroups() error {
	var errs []error
	for _, top := range s.cgroups {
		errs = append(errs, removeTree(top))
	}
	for _, lock := range s.locks {
		errs = append(errs, lock.Close())
	}
	return errors.Join(errs...)
}

// removeTree removes cgroups from the innermost on.
func removeTree(top string) error {
	var all []string
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	var errs []error
	for _, dir := range slices.Backward(all) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
