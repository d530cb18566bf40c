// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package badinput

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/belayproject/belay/internal/process"
)

// The environment of a child process: the package whose calls it makes, and the first one of them.
const (
	packageVariable = "BELAY_BADINPUT_PACKAGE"
	firstVariable   = "BELAY_BADINPUT_FIRST"
)

// A Fault is what a call did that no call may do.
type Fault struct {
	// Call is the function, a colon and how it was called.
	Call string
	// Text says what is wrong.
	Text string
}

// A message is a line from a child process: a call begins, or has a fault.
type message struct {
	Number int
	Call   string
	Fault  string
	Done   bool
}

// RunChild makes the calls that the environment names, and reports whether it names any. A test's TestMain calls it
// first.
func (s *Suite) RunChild() bool {
	pkg := os.Getenv(packageVariable)
	if !slices.Contains(s.ListPackages(), pkg) {
		return false
	}
	first, err := strconv.Atoi(os.Getenv(firstVariable))
	if err != nil {
		return false
	}
	s.Run(pkg, first, os.Stdout)
	return true
}

// Run makes the calls of one package, beginning with the one of a number, and writes messages. It stops after a call
// that left something running.
func (s *Suite) Run(pkg string, first int, out io.Writer) {
	enc := json.NewEncoder(out)
	for i, c := range s.listCalls(pkg) {
		if i < first {
			continue
		}
		_ = enc.Encode(message{Number: i, Call: c.name})
		faults, hung := s.runCall(c)
		for _, f := range faults {
			_ = enc.Encode(message{Number: i, Call: c.name, Fault: f})
		}
		if hung {
			return
		}
	}
	_ = enc.Encode(message{Done: true})
}

// RunIsolated makes the calls of one package in child processes of the test, in an empty directory, and returns their
// number and faults. A child that dies is a fault of the call that it made last; another one goes on after it.
func (s *Suite) RunIsolated(ctx context.Context, pkg, dir string) (made int, faults []Fault, err error) {
	for {
		messages, stderr, err := startChild(ctx, pkg, dir, made)
		if err != nil {
			return made, faults, err
		}
		faulty := false
		last := message{Number: -1}
		for _, m := range messages {
			if m.Done {
				return made, faults, nil
			}
			if m.Fault != "" {
				faulty = true
				faults = append(faults, Fault{m.Call, m.Fault})
				continue
			}
			last, faulty, made = m, false, m.Number+1
		}
		if last.Number < 0 {
			return made, faults, fmt.Errorf("badinput: a child process made no call of %q: %s", pkg, stderr)
		}
		if !faulty {
			faults = append(faults, Fault{last.Call, "ends the process:\n" + stderr})
		}
	}
}

// startChild runs the test binary as a child, until it ends.
func startChild(ctx context.Context, pkg, dir string, first int) ([]message, string, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Dir = dir
	own := []string{packageVariable + "=" + pkg, firstVariable + "=" + strconv.Itoa(first), "HOME=" + dir, "TMPDIR=" + dir}
	cmd.Env = append(os.Environ(), own...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := process.Run(ctx, cmd); err != nil && !errors.As(err, &exit) {
		return nil, "", err
	}
	var messages []message
	lines := bufio.NewScanner(&stdout)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) == nil {
			messages = append(messages, m)
		}
	}
	return messages, lastPanic(stderr.String()), ctx.Err()
}

// lastPanic returns the panic that ended a process, or the end of what it wrote.
func lastPanic(stderr string) string {
	lines := strings.Split(stderr, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return strings.Join(lines[i:min(len(lines), i+20)], "\n")
		}
	}
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
