// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultproof_test

import (
	"errors"
	"io"
	"net/rpc"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// recorder is a volume on a disk that a process of ours plays.
type recorder struct {
	*volume
	disk *rpc.Client
}

// newRecorder starts a disk that holds a new, empty file system, which is not mounted. The disk's process has a mount namespace of its
// own: the last process of one unmounts what is there, and a disk that ends must not wait for itself.
func newRecorder(t *testing.T, k kind) *recorder {
	t.Helper()
	v := newVolume(t, k)
	place := filepath.Join(filepath.Dir(v.dir), "fuse")
	must(t, os.Mkdir(place, 0o755))
	cmd := self("disk", diskImageVar+"="+v.file, diskMountVar+"="+place)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, output, err := os.Pipe()
	must(t, err)
	cmd.Stdout = output
	ended, err := startBound(cmd, syscall.CLONE_NEWNS)
	output.Close()
	must(t, err)
	r := &recorder{volume: v, disk: rpc.NewClient(&conn{out, in})}
	t.Cleanup(func() {
		r.close(t)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			t.Error("the disk's process did not end")
		}
	})
	v.file = filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "root", place, diskName(v.file))
	r.call(t, "SetFault", Fault{}, nil)
	if _, err := os.Stat(v.file); err != nil {
		t.Fatalf("the disk is not there: %v", err)
	}
	return r
}

type conn struct {
	io.ReadCloser
	in io.WriteCloser
}

func (c *conn) Write(p []byte) (int, error) { return c.in.Write(p) }

func (c *conn) Close() error {
	err := c.in.Close()
	if closing := c.ReadCloser.Close(); err == nil {
		err = closing
	}
	return err
}

// close lets go of the disk: first of what may wait for it.
func (r *recorder) close(t *testing.T) {
	_ = r.disk.Call("Disk.Hold", time.Duration(0), &struct{}{})
	for unix.Unmount(r.dir, unix.MNT_DETACH) == nil {
	}
	if err := r.disk.Close(); err != nil && !errors.Is(err, rpc.ErrShutdown) {
		t.Error(err)
	}
}

// call asks the disk. A nil reply is for calls that have none.
func (r *recorder) call(t *testing.T, method string, args, reply any) {
	t.Helper()
	if reply == nil {
		reply = &struct{}{}
	}
	if err := r.disk.Call("Disk."+method, args, reply); err != nil {
		t.Fatalf("the disk, asked for %s: %v", method, err)
	}
}

// begin and done make the disk's own log the journal.
func (r *recorder) begin(stream string, v value) {
	check(r.disk.Call("Disk.Mark", Mark{Stream: stream, Value: int(v)}, &struct{}{}))
}

func (r *recorder) done(stream string, v value, err error) {
	if err == nil {
		check(r.disk.Call("Disk.Mark", Mark{Stream: stream, Value: int(v), Done: true}, &struct{}{}))
	}
}
