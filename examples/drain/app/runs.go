// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A runID names a run of the command: HOST/PID/MACHINE-START. MACHINE is a hash of what tells one numbering of
// processes from another, the boot and the PID namespace, and START is when the process started. By it another run on
// the same machine knows whether this one lives, without a write to the API server.
type runID struct {
	host    string
	pid     int
	machine string
	start   string
}

// readRunID returns the ID of this process.
func readRunID() runID {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	sum := sha256.Sum256(append(boot, namespace...))
	id := runID{host: host, pid: os.Getpid(), machine: fmt.Sprintf("%x", sum[:4])}
	if id.start, _ = processStart(id.pid); id.start == "" {
		id.start = strconv.FormatInt(time.Now().UnixNano(), 36)
	}
	return id
}

// String is the ID as a mark has it.
func (id runID) String() string {
	return fmt.Sprintf("%s/%d/%s-%s", id.host, id.pid, id.machine, id.start)
}

// parseRunID reads an ID. ok is false for those of other programs.
func parseRunID(text string) (id runID, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return id, false
	}
	pid, err := strconv.Atoi(parts[1])
	machine, start, found := strings.Cut(parts[2], "-")
	return runID{host: parts[0], pid: pid, machine: machine, start: start}, err == nil && found
}

// processStart returns when a process started, in the words of the kernel, and whether it has ended and waits for its
// parent. It is empty where the system has no /proc.
func processStart(pid int) (start string, ended bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	// The name of the program, in parentheses, may hold anything. The state is the first field after it.
	const state, started = 0, 19
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) <= started {
		return "", false
	}
	return fields[started], fields[state] == "Z" || fields[state] == "X"
}

// hasEnded reports whether it is known that the process has ended: it ran on the machine of here,
// since its last boot.
func (id runID) hasEnded(here runID) bool {
	if id.host != here.host || id.machine != here.machine {
		return false
	}
	process, err := os.FindProcess(id.pid)
	if err != nil {
		return false
	}
	if errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		return true
	}
	start, ended := processStart(id.pid)
	return ended || start != "" && start != id.start
}

// takeOver says which runs of the holder leave their nodes to this one: those that are known to have ended, and all
// where the user says so. Each is told of once.
func (a *app) takeOver(all bool) func(run string) bool {
	var mu sync.Mutex
	told := map[string]bool{}
	return func(run string) bool {
		id, ok := parseRunID(run)
		ended := ok && id.hasEnded(a.id)
		if !ended && !all {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if !told[run] {
			told[run] = true
			why := "--take-over"
			if ended {
				why = "it has ended"
			}
			fmt.Fprintf(a.errs, "drain: takes over from run %s (%s)\n", run, why)
		}
		return true
	}
}
