// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package systemdenv

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/internal/tier"
)

// manager is the program; it is not in PATH everywhere.
const manager = "/usr/lib/systemd/systemd"

// The environment of the copy of a test that runs inside.
const (
	envCgroups = "BELAY_SYSTEMD_CGROUPS"
	envUnits   = "BELAY_SYSTEMD_UNITS"
)

const (
	// patience bounds the start of systemd, and each wait of Eventually.
	patience = 30 * time.Second
	// longest bounds all of a test inside: longer than each of its waits, so that the one that fails says why.
	longest = 5 * time.Minute
)

// Run has a copy of this test process run the test of that name again, with the given environment besides, and there calls f: with a process
// namespace, mounts and a /run of its own, and a systemd that Dial of package systemd finds, and systemctl --user does. f writes units to the
// directory units and has systemd read them by Reload. The test is skipped where that can't be.
func Run(t *testing.T, env []string, f func(t *testing.T, units string)) {
	t.Helper()
	if units := os.Getenv(envUnits); units != "" {
		begin(t, units)
		f(t, units)
		return
	}
	tier.Require(t)
	if _, err := os.Stat(manager); err != nil {
		t.Skipf("systemd is not installed: %v", err)
	}
	cgroups, err := newCgroups()
	t.Cleanup(func() {
		for _, dir := range cgroups {
			removeCgroup(t, dir)
		}
	})
	if err != nil {
		t.Skipf("a systemd of one's own needs the right to make cgroups: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout="+longest.String())
	cmd.Env = append(append(os.Environ(), env...), envCgroups+"="+strings.Join(cgroups, ":"), envUnits+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		t.Skipf("a systemd of one's own needs the right to make namespaces: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("under systemd: %v\n%s", err, out)
	}
}

// newCgroups makes a cgroup below that of this process in each hierarchy that systemd uses: the unified one, and the one of its name,
// in which it repeats what it makes in the former.
func newCgroups() (dirs []string, err error) {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	made := "belay-systemd-" + rand.Text()
	for line := range strings.Lines(string(raw)) {
		id, own, _ := strings.Cut(strings.TrimSpace(line), ":")
		name, own, _ := strings.Cut(own, ":")
		root := "/sys/fs/cgroup"
		switch {
		case name == "name=systemd":
			root += "/systemd"
		case id != "0":
			continue
		case exists(root + "/unified"):
			root += "/unified"
		}
		dir := filepath.Join(root, own, made)
		if !exists(filepath.Join(root, own, "cgroup.procs")) { // it is not mounted here
			continue
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return dirs, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// removeCgroup removes what is left, the innermost first. Who was in it was killed with the process namespace.
func removeCgroup(t *testing.T, dir string) {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	for i := len(all) - 1; i >= 0 && err == nil; i-- {
		err = testproc.Poll(5*time.Second, func() error { return unix.Rmdir(all[i]) })
	}
	if err != nil {
		t.Errorf("removing the cgroup of the test: %v", err)
	}
}

// begin makes this process's surroundings its own and starts systemd.
func begin(t *testing.T, units string) {
	t.Helper()
	for dir := range strings.SplitSeq(os.Getenv(envCgroups), ":") {
		must(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0))
	}
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	must(t, unix.Mount("proc", "/proc", "proc", 0, ""))
	must(t, unix.Mount("belay-test", "/run", "tmpfs", 0, "mode=0755"))
	const runtime = "/run/user/0"
	must(t, os.MkdirAll(runtime+"/systemd", 0o700))
	must(t, os.MkdirAll("/run/systemd/system", 0o755))
	// A root that finds no system bus asks at this socket.
	must(t, os.Symlink(runtime+"/systemd/private", "/run/systemd/private"))
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	must(t, os.WriteFile(filepath.Join(units, "belay-test.target"), []byte("[Unit]\nDefaultDependencies=no\n"), 0o600))
	log, err := os.Create(filepath.Join(units, "systemd.log"))
	must(t, err)
	defer log.Close()
	cmd := exec.CommandContext(t.Context(), manager, "--user", "--unit=belay-test.target", "--log-target=console", "--log-level=info")
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+units)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("systemd:\n%s", text)
		}
	})
	must(t, testproc.Poll(patience, func() error { return Systemctl(t, "is-active", "belay-test.target") }))
}

// Systemctl runs a command of the systemd. The error holds what it wrote.
func Systemctl(t testing.TB, args ...string) error {
	out, err := exec.CommandContext(t.Context(), "systemctl", append([]string{"--user"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// DescribeUnit returns what systemd says about a unit, for people.
func DescribeUnit(t testing.TB, unit string) string {
	cmd := exec.CommandContext(t.Context(), "systemctl", "--user", "status", "--full", "--no-pager", unit)
	out, err := cmd.CombinedOutput()
	return fmt.Sprintf("%s(%v)", out, err)
}

// Eventually polls check until it returns nil, or ends the test.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	if err := testproc.Poll(patience, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
