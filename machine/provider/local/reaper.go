// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package local

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A reaper waits for the machines that this process has started, so that none stays as a zombie, and remembers how they ended. It has one goroutine,
// whatever their number.
type reaper struct {
	wake int // an eventfd
	done chan struct{}

	mu       sync.Mutex // guards what follows
	closed   bool
	children map[int]child     // by pidfd
	ends     map[string]ending // by token
}

// A child is a process of this one.
type child struct {
	token string
	cmd   *exec.Cmd
	own   process
}

// An ending is how the last process of a machine ended.
type ending struct {
	process process
	how     string
}

func newReaper() (*reaper, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	r := &reaper{wake: wake, done: make(chan struct{}), children: map[int]child{}, ends: map[string]ending{}}
	go r.run()
	return r, nil
}

// add takes over a process that was started, with the pidfd of it.
func (r *reaper) add(pidfd int, c child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = unix.Close(pidfd)       // only waited with
		_ = c.cmd.Process.Release() // it runs on, as all do
		return
	}
	r.children[pidfd] = c
	r.stir()
}

// stir wakes the goroutine.
func (r *reaper) stir() {
	_, _ = unix.Write(r.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // it is full only if it is awake
}

// how says how a process ended, "" if that is not known.
func (r *reaper) how(token string, p process) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.ends[token]; e.process == p {
		return e.how
	}
	return ""
}

// forget is for a machine that is gone.
func (r *reaper) forget(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ends, token)
}

// close ends the goroutine. The machines run on.
func (r *reaper) close() {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		<-r.done
		return
	}
	r.closed = true
	r.stir()
	r.mu.Unlock()
	<-r.done
	for fd, c := range r.children { // nobody else is left
		_ = unix.Close(fd)
		_ = c.cmd.Process.Release()
	}
	_ = unix.Close(r.wake)
}

func (r *reaper) run() {
	defer close(r.done)
	for {
		fds, closed := r.watched()
		if closed {
			return
		}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return // no memory: children are reaped when this process ends
		}
		if fds[0].Revents != 0 {
			var count [8]byte
			_, _ = unix.Read(r.wake, count[:]) // resets it
		}
		for _, f := range fds[1:] {
			if f.Revents != 0 {
				r.reap(int(f.Fd))
			}
		}
	}
}

func (r *reaper) watched() (fds []unix.PollFd, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fds = append(fds, unix.PollFd{Fd: int32(r.wake), Events: unix.POLLIN})
	for fd := range r.children {
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	return fds, r.closed
}

// reap waits for a process that has ended.
func (r *reaper) reap(pidfd int) {
	r.mu.Lock()
	c := r.children[pidfd]
	r.mu.Unlock()
	_ = c.cmd.Wait() // its state says more
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.children, pidfd)
	_ = unix.Close(pidfd)
	r.ends[c.token] = ending{process: c.own, how: howEnded(c.cmd)}
}

func howEnded(cmd *exec.Cmd) string {
	if cmd.ProcessState == nil {
		return "" // somebody else has waited for it
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return "killed by " + unix.SignalName(status.Signal())
	}
	return fmt.Sprintf("exit status %d", cmd.ProcessState.ExitCode())
}
