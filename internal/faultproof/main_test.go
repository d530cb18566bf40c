// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The test binary runs itself for what needs another process; the environment says as what.
const (
	roleVar   = "BELAY_FAULTS_ROLE"
	dirVar    = "BELAY_FAULTS_DIR"
	reasonVar = "BELAY_FAULTS_CANNOT_MOUNT"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	roles := map[string]func() error{"disk": diskRole, "write": writeRole, "open": openRole}
	switch {
	case roles[role] != nil:
		if err := roles[role](); err != nil {
			fmt.Fprintln(os.Stderr, "role", role+":", err)
			os.Exit(1)
		}
	case role == "inside":
		if err := enter(); err != nil {
			check(os.Setenv(reasonVar, err.Error()))
		}
		os.Exit(m.Run())
	default:
		os.Exit(outside(m))
	}
}

// outside runs the tests in a mount namespace, in a process that dies with this one. Where that can not be, it runs them here, and
// those that mount are skipped.
func outside(m *testing.M) int {
	runtime.LockOSThread() // the other process dies with this thread
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), roleVar+"=inside")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		check(os.Setenv(reasonVar, err.Error()))
		return m.Run()
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// enter covers a directory of the machine with a file system in memory, which this namespace alone sees.
func enter() error {
	check(os.Unsetenv(roleVar))
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	var errs []error
	for _, dir := range []string{"/dev/shm", "/mnt", "/media"} {
		err := unix.Mount("belay-faults", dir, "tmpfs", 0, "mode=0755,size=2g")
		if err == nil {
			return os.Setenv(dirVar, dir)
		}
		errs = append(errs, fmt.Errorf("mounting a file system in memory at %q: %w", dir, err))
	}
	return errors.Join(errs...)
}

// check is for what can not fail.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// self makes a command of this binary, in a role.
func self(role string, env ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(append(os.Environ(), roleVar+"="+role), env...)
	return cmd
}

// startBound starts a command that dies with this process, with flags for its namespaces. The thread that starts it lives as long as
// the command does.
func startBound(cmd *exec.Cmd, clone uintptr) (ended <-chan error, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: clone}
	started, end := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread ends with this function
		err := cmd.Start()
		started <- err
		if err == nil {
			end <- cmd.Wait()
		}
	}()
	return end, <-started
}
