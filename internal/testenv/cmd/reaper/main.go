// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

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
	_, _ = io.Copy(io.Discard, os.Stdin) // whatever ends the reading, the owner is gone
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
