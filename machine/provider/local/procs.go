// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Names of variables that a machine is marked by.
const (
	markToken = "BELAY_MACHINE="
	markDir   = "BELAY_MACHINE_DIR="
)

// A process is one that can't be taken for another one: numbers are used again, but not with the same start in the same boot.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since the boot
	Boot  string `json:"boot"`
}

// bootID is that of the running kernel.
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// A stat is a part of /proc/PID/stat.
type stat struct {
	state   byte
	session int
	start   uint64
}

// ended reports whether the process runs no more. It may not have been waited for.
func (s stat) ended() bool { return s.state == 'Z' || s.state == 'X' || s.state == 'x' }

func statOf(pid int) (stat, error) {
	data, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(data)
}

// parseStat reads the fields after the name, which is in parentheses and may have some itself.
func parseStat(data []byte) (stat, error) {
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return stat{}, fmt.Errorf("%.200q is no stat of a process", data)
	}
	session, err := strconv.Atoi(string(fields[3]))
	start, errStart := strconv.ParseUint(string(fields[19]), 10, 64)
	if err = errors.Join(err, errStart); err != nil {
		return stat{}, fmt.Errorf("%.200q is no stat of a process: %w", data, err)
	}
	return stat{state: fields[0][0], session: session, start: start}, nil
}

func procFile(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// processOf names a process that is there now.
func (c *core) processOf(pid int) (process, error) {
	s, err := statOf(pid)
	return process{PID: pid, Start: s.start, Boot: c.boot}, err
}

// alive reports whether a process still runs.
func (c *core) alive(p process) bool {
	s, ok := c.known(p)
	return ok && !s.ended()
}

// known reports whether a process is there, if only as one that nobody has waited for.
func (c *core) known(p process) (stat, bool) {
	if p.PID <= 0 || p.Boot != c.boot {
		return stat{}, false
	}
	s, err := statOf(p.PID)
	return s, err == nil && s.start == p.Start
}

// A member is a process of a machine, by a handle that can't come to mean another process.
type member struct {
	pid     int
	session int
	fd      int
}

// members finds the processes of a machine that run: those with its mark in the environment, and those in the session of its first process, as
// long as the kernel remembers that one.
func (c *core) members(token string, first process) ([]member, error) {
	session := 0
	if _, ok := c.known(first); ok {
		session = first.PID
	}
	pids, err := allPIDs()
	if err != nil {
		return nil, err
	}
	var found []member
	for _, pid := range pids {
		if pid == os.Getpid() || !c.isMember(pid, token, session) {
			continue
		}
		m, err := c.handle(pid, token, session)
		if err != nil {
			closeAll(found)
			return nil, err
		}
		if m.pid != 0 {
			found = append(found, m)
		}
	}
	return found, nil
}

// handle opens a process and looks at it once more: the number may be another one's meanwhile. It returns none for one that has ended.
func (c *core) handle(pid int, token string, session int) (member, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return member{}, nil
	}
	if err != nil {
		return member{}, fmt.Errorf("process %d: pidfd_open: %w", pid, err)
	}
	s, err := statOf(pid)
	if err != nil || s.ended() || !c.isMember(pid, token, session) {
		_ = unix.Close(fd) // only read
		return member{}, nil
	}
	return member{pid: pid, session: s.session, fd: fd}, nil
}

func (c *core) isMember(pid int, token string, session int) bool {
	s, err := statOf(pid)
	if err != nil || s.ended() {
		return false
	}
	if session != 0 && s.session == session {
		return true
	}
	environ, err := os.ReadFile(procFile(pid, "environ"))
	return err == nil && marked(environ, token, c.dir(token))
}

// marked reports whether an environment is that of a machine in that directory.
func marked(environ []byte, token, dir string) bool {
	has := func(entry string) bool {
		e := append([]byte(entry), 0)
		return bytes.HasPrefix(environ, e) || bytes.Contains(environ, append([]byte{0}, e...))
	}
	return has(markToken+token) && has(markDir+dir)
}

func allPIDs() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// closeAll closes the handles.
func closeAll(members []member) {
	for _, m := range members {
		_ = unix.Close(m.fd) // only read
	}
}

// send signals a process. That it has ended is no error.
func send(m member, sig unix.Signal) error {
	err := unix.PidfdSendSignal(m.fd, sig, nil, 0)
	if err == nil || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return fmt.Errorf("process %d can't be sent %s: %w", m.pid, unix.SignalName(sig), err)
}

// lookAround returns an error when machines of this root run while the root has none, as when its disk is not mounted.
func lookAround(s *store) error {
	entries, err := readNames(s.machines)
	if err != nil || len(entries) > 0 {
		return err
	}
	pids, err := allPIDs()
	if err != nil {
		return err
	}
	prefix := []byte(markDir + filepath.Join(s.path, machinesDir) + "/")
	for _, pid := range pids {
		environ, _ := os.ReadFile(procFile(pid, "environ")) // it may have ended, or be somebody else's
		if pid != os.Getpid() && (bytes.HasPrefix(environ, prefix) || bytes.Contains(environ, append([]byte{0}, prefix...))) {
			return fmt.Errorf("it is empty, but process %d is a machine of it: is its disk mounted?", pid)
		}
	}
	return nil
}
