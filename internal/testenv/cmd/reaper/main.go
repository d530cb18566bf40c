// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command reaper waits until its standard input ends and then removes what its owner started.
//
// The owner, a test binary or the demo's control plane, holds the other end of that pipe and nothing else does, so
// the input ends when the owner closes it or dies, however it dies. What belongs to the owner is found by one
// identifier and not by a list, so that nothing can be forgotten between a start and its registration: processes
// that carry it in their environment or in a cgroup's name, mounts beneath the directory, cgroups named by it.
//
// It imports only the standard library: its own files are all that its build depends on.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

func main() {
	// A terminal's signals are for the owner; a broken pipe only means that nobody reads the report.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	id := flag.String("id", "", "hexadecimal identifier of the owner's things, at least 16 digits")
	dir := flag.String("dir", "", "absolute path of the owner's directory, whose name ends with the identifier")
	flag.Parse()
	if err := check(*id, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "reaper:", err)
		os.Exit(2)
	}
	io.Copy(io.Discard, os.Stdin)
	if err := reap(*id, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "reaper:", err)
		os.Exit(1)
	}
}

var validID = regexp.MustCompile(`^[0-9a-f]{16,}$`)

// check refuses arguments with which the reaper could kill or remove what is not its owner's.
func check(id, dir string) error {
	if !validID.MatchString(id) {
		return fmt.Errorf("identifier %q must be at least 16 hexadecimal digits", id)
	}
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || !strings.HasSuffix(filepath.Base(dir), "-"+id) {
		return fmt.Errorf("directory %q must be absolute, and its name must end with the identifier", dir)
	}
	return nil
}
