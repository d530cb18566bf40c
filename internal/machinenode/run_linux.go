// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinenode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belayproject/belay/internal/testenv/nodetier"
)

// run waits for every process that ends, as the first process of a PID namespace must, until it is told to stop or a process that is needed has
// ended.
func (s *system) run(stop, child <-chan os.Signal) error {
	for {
		if err := s.reap(); err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		case <-child:
		}
	}
}

// reap looks at all processes that have ended. That one of them was needed is an error.
func (s *system) reap() error {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || pid == 0:
			return nil
		case s.needed[pid] != "":
			return fmt.Errorf("%s has ended: exit status %d, signal %d", s.needed[pid], status.ExitStatus(), status.Signal())
		}
	}
}

// patience is how long cgroups may take to be empty.
const patience = 10 * time.Second

// end kills whatever still runs in the machine, as a power cut does, and removes the cgroups of its pods.
func (s *system) end() error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		if err := unix.Kill(-1, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("killing what is left: %w", err)
		}
		_ = s.reap() // all of them end now
		left, err := nodetier.Cgroups(s.cgroup)
		for _, dir := range left {
			if e := unix.Rmdir(dir); e != nil && !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, &fs.PathError{Op: "removing cgroup", Path: dir, Err: e})
			}
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
