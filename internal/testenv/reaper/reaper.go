// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package reaper

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// marker is the environment variable that the reaper looks for; its program knows the same name.
const marker = "BELAY_REAP"

// Reaper removes what belongs to one owner. Its methods may be called concurrently.
type Reaper struct {
	id, dir string
	close   func() error
}

// New starts the reaper at path program and makes the owner's directory in the system's temporary one.
func New(program string) (*Reaper, error) {
	var raw [8]byte
	rand.Read(raw[:]) // never fails
	id := hex.EncodeToString(raw[:])
	dir := filepath.Join(os.TempDir(), "belay-"+id)
	cmd := exec.Command(program, "-id", id, "-dir", dir)
	cmd.Env = unmarked(os.Environ())                     // an outer reaper must not kill this one before its work
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // nor a signal to the owner's process group
	var report bytes.Buffer
	cmd.Stdout, cmd.Stderr = &report, &report
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("making the reaper's pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the reaper: %w", err)
	}
	r := &Reaper{id: id, dir: dir, close: sync.OnceValue(func() error { return finish(cmd, pipe, &report) })}
	if err := os.Mkdir(dir, 0o700); err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("making the directory: %w", err)
	}
	return r, nil
}

func finish(cmd *exec.Cmd, pipe io.Closer, report *bytes.Buffer) error {
	if err := pipe.Close(); err != nil {
		return fmt.Errorf("telling the reaper: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("reaping: %w: %s", err, bytes.TrimSpace(report.Bytes()))
	}
	return nil
}

// ID returns the identifier, 16 hexadecimal digits. A cgroup or a network whose name ends with "-" and the
// identifier is removed with the rest.
func (r *Reaper) ID() string { return r.id }

// Dir returns the directory, mode 0700. Whatever is mounted beneath it is unmounted before it is removed.
func (r *Reaper) Dir() string { return r.dir }

// Mark makes the process that cmd will start, and all its descendants, belong to this reaper.
func (r *Reaper) Mark(cmd *exec.Cmd) {
	cmd.Env = append(unmarked(cmd.Environ()), marker+"="+r.id)
}

// Close kills and removes everything that belongs to the reaper and returns what could not be removed. Further
// calls return the same.
func (r *Reaper) Close() error { return r.close() }

func unmarked(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, marker+"=") })
}
