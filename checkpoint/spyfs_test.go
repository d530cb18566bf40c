// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package checkpoint

import (
	"strings"
	"sync"
)

// spyFS is the kernel with an ear in front: it notes every call that can change the disk or fail, and lets a test fail
// one, before or after it was done.
type spyFS struct {
	linuxFS
	before func(call) error // an error instead of the call; nil = none
	after  func(call) error // an error though the call was done
	dry    bool             // no fsync reaches the disk: for tests that fail calls, not disks

	mu    sync.Mutex
	names map[int]string // what each descriptor was opened as
	calls []call
}

// call is one system call: the operation, and the file it is about by its name.
type call struct {
	op   string
	file string
	to   string // rename only
	fd   int
}

func (c call) String() string {
	if c.to != "" {
		return c.op + " " + c.file + " " + c.to
	}
	return c.op + " " + c.file
}

func newSpy() *spyFS { return &spyFS{names: map[int]string{}} }

// on runs one call between the two hooks.
func (s *spyFS) on(c call, do func() error) error {
	s.mu.Lock()
	if c.file == "" {
		c.file = s.names[c.fd]
	}
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	if s.before != nil {
		if err := s.before(c); err != nil {
			return err
		}
	}
	err := do()
	if err == nil && s.after != nil {
		err = s.after(c)
	}
	return err
}

// reset forgets the calls so far.
func (s *spyFS) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// script gives the calls that change the disk, temporary names made equal.
func (s *spyFS) script() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, c := range s.calls {
		if strings.HasPrefix(c.op, "stat") || c.op == "read" || c.op == "list" || c.op == "kind" || c.op == "room" {
			continue
		}
		if strings.HasPrefix(c.file, tempPrefix) {
			c.file = "TEMP"
		}
		lines = append(lines, c.String())
	}
	return lines
}

func (s *spyFS) count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if c.op == op {
			n++
		}
	}
	return n
}

func (s *spyFS) opened(fd int, name string, err error) (int, error) {
	if err != nil {
		if fd >= 0 {
			s.linuxFS.close(fd)
		}
		return -1, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[fd] = name
	return fd, nil
}

func (s *spyFS) openAt(dir int, name string, how openHow) (int, error) {
	ops := map[openHow]string{openRead: "open", openDir: "opendir", openNew: "create", openLock: "openlock", openWrite: "openwrite"}
	fd := -1
	err := s.on(call{op: ops[how], file: name, fd: dir}, func() (err error) {
		fd, err = s.linuxFS.openAt(dir, name, how)
		return err
	})
	return s.opened(fd, name, err)
}

func (s *spyFS) openPath(path string) (int, error) {
	fd := -1
	err := s.on(call{op: "openpath", file: path}, func() (err error) {
		fd, err = s.linuxFS.openPath(path)
		return err
	})
	return s.opened(fd, path, err)
}

// close closes in any case: a descriptor is gone, whatever the call returned.
func (s *spyFS) close(fd int) error {
	err := s.on(call{op: "close", fd: fd}, func() error { return nil })
	if closing := s.linuxFS.close(fd); err == nil {
		err = closing
	}
	return err
}

func (s *spyFS) stat(fd int) (info fileInfo, err error) {
	err = s.on(call{op: "stat", fd: fd}, func() (err error) { info, err = s.linuxFS.stat(fd); return err })
	return info, err
}

func (s *spyFS) statAt(dir int, name string) (info fileInfo, err error) {
	err = s.on(call{op: "statat", file: name, fd: dir}, func() (err error) { info, err = s.linuxFS.statAt(dir, name); return err })
	return info, err
}

func (s *spyFS) statPath(path string) (info fileInfo, err error) {
	err = s.on(call{op: "statpath", file: path}, func() (err error) { info, err = s.linuxFS.statPath(path); return err })
	return info, err
}

func (s *spyFS) kindOf(fd int) (kind storage, err error) {
	err = s.on(call{op: "kind", fd: fd}, func() (err error) { kind, err = s.linuxFS.kindOf(fd); return err })
	return kind, err
}

func (s *spyFS) room(fd int) (n int64, err error) {
	err = s.on(call{op: "room", fd: fd}, func() (err error) { n, err = s.linuxFS.room(fd); return err })
	return n, err
}

func (s *spyFS) list(dir int) (names []string, err error) {
	err = s.on(call{op: "list", fd: dir}, func() (err error) { names, err = s.linuxFS.list(dir); return err })
	return names, err
}

func (s *spyFS) readAt(fd int, p []byte, off int64) (n int, err error) {
	err = s.on(call{op: "read", fd: fd}, func() (err error) { n, err = s.linuxFS.readAt(fd, p, off); return err })
	return n, err
}

func (s *spyFS) writeAt(fd int, bufs [][]byte, off int64) (n int, err error) {
	err = s.on(call{op: "write", fd: fd}, func() (err error) { n, err = s.linuxFS.writeAt(fd, bufs, off); return err })
	return n, err
}

func (s *spyFS) hurry(fd int) error {
	return s.on(call{op: "hurry", fd: fd}, func() error { return s.linuxFS.hurry(fd) })
}

func (s *spyFS) truncate(fd int) error {
	return s.on(call{op: "truncate", fd: fd}, func() error { return s.linuxFS.truncate(fd) })
}

func (s *spyFS) allocate(fd int, size int64) error {
	return s.on(call{op: "allocate", fd: fd}, func() error { return s.linuxFS.allocate(fd, size) })
}

func (s *spyFS) chmod(fd int, perm uint32) error {
	return s.on(call{op: "chmod", fd: fd}, func() error { return s.linuxFS.chmod(fd, perm) })
}

func (s *spyFS) chmodAt(dir int, name string, perm uint32) error {
	return s.on(call{op: "chmodat", file: name, fd: dir}, func() error { return s.linuxFS.chmodAt(dir, name, perm) })
}

func (s *spyFS) sync(fd int) error {
	return s.on(call{op: "sync", fd: fd}, func() error {
		if s.dry {
			return nil
		}
		return s.linuxFS.sync(fd)
	})
}

func (s *spyFS) mkdir(dir int, name string, perm uint32) error {
	return s.on(call{op: "mkdir", file: name, fd: dir}, func() error { return s.linuxFS.mkdir(dir, name, perm) })
}

func (s *spyFS) rename(dir int, from, to string) error {
	return s.on(call{op: "rename", file: from, to: to, fd: dir}, func() error { return s.linuxFS.rename(dir, from, to) })
}

func (s *spyFS) replace(dir int, from, to string) error {
	return s.on(call{op: "replace", file: from, to: to, fd: dir}, func() error { return s.linuxFS.replace(dir, from, to) })
}

func (s *spyFS) chown(fd int, uid, gid uint32) error {
	return s.on(call{op: "chown", fd: fd}, func() error { return s.linuxFS.chown(fd, uid, gid) })
}

func (s *spyFS) unlink(dir int, name string) error {
	return s.on(call{op: "unlink", file: name, fd: dir}, func() error { return s.linuxFS.unlink(dir, name) })
}

func (s *spyFS) rmdir(dir int, name string) error {
	return s.on(call{op: "rmdir", file: name, fd: dir}, func() error { return s.linuxFS.rmdir(dir, name) })
}

func (s *spyFS) lock(fd int) error {
	return s.on(call{op: "lock", fd: fd}, func() error { return s.linuxFS.lock(fd) })
}
