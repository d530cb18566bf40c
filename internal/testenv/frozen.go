// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// freezing is how long the threads of a process may take to stop.
const freezing = 10 * time.Second

// frozen waits until no thread of the process runs any more. A signal is noticed by one thread first, which on a busy machine has to wait for a
// core, and until then the others go on and answer.
func frozen(pid int) error {
	deadline := time.After(freezing)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		running, err := runningThreads(pid)
		if err != nil || running == 0 {
			return err
		}
		select {
		case <-deadline:
			return fmt.Errorf("%d threads of process %d run %s after SIGSTOP", running, pid, freezing)
		case <-ticker.C:
		}
	}
}

// runningThreads counts the threads that are not stopped: the state is the letter after the name, which is in parentheses and may hold any.
func runningThreads(pid int) (int, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return 0, err
	}
	if len(files) == 0 {
		return 0, fmt.Errorf("process %d has no threads in /proc: is it gone, or is this not Linux?", pid)
	}
	running := 0
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		if i := bytes.LastIndexByte(stat, ')'); i >= 0 && i+2 < len(stat) && !bytes.ContainsRune([]byte("TtZX"), rune(stat[i+2])) {
			running++
		}
	}
	return running, nil
}
