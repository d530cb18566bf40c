// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/lkg"
)

// A deafListener accepts connections and never answers. It counts those that are open.
type deafListener struct {
	open atomic.Int64
}

func (d *deafListener) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		d.open.Add(1)
		go func() {
			defer d.open.Add(-1)
			for buffer := make([]byte, 1<<10); err == nil; {
				_, err = conn.Read(buffer)
			}
			_ = conn.Close() // the other end is gone
		}()
	}
}

// C-36: to ask a runtime that hangs, however often, keeps no connection.
func TestARuntimeThatHangsCostsNoConnections(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "cri.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	d := &deafListener{}
	go d.serve(listener)
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := askRuntime(ctx, "unix://"+socket); err == nil {
			t.Error("a runtime that never answers has answered")
		}
		_ = lacksRuntimeConfig(ctx, socket)
		cancel()
	}
	if err := testproc.Poll(5*time.Second, func() error {
		if n := d.open.Load(); n != 0 {
			return fmt.Errorf("%d connections are open after 5 s, want none", n)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}

// C-36: a runtime that accepts and never answers is told in good time before the deadline of the end, or the end would
// be a crash of the config.
func TestAHungRuntimeIsToldBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	runtime := &stubRuntime{socket: filepath.Join(t.TempDir(), "cri.sock"), hang: true}
	at := "unix://" + runtime.socket
	w, err := NewWitness(Subject{Command: []string{stubProgram(t), "--container-runtime-endpoint", at}})
	if err != nil {
		t.Fatal(err)
	}
	runtime.start(t)
	defer runtime.stop(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	got := w.AttributeExit(ctx, crashExit())
	if ctx.Err() != nil || got.Fault != lkg.FaultEnvironment || got.Signature != "container runtime away: "+at {
		t.Errorf("AttributeExit = %+v, context %v; want an environment fault within the deadline", got, ctx.Err())
	}
}

// C-36: a disk that does not answer holds up neither the probe nor an end of the kubelet, and is asked once, however
// often it is looked at.
func TestADiskThatHangsHoldsUpNothing(t *testing.T) {
	w, err := NewWitness(Subject{Command: []string{stubProgram(t), "--root-dir", t.TempDir(),
		"--container-runtime-endpoint", "tcp://none"}})
	if err != nil {
		t.Fatal(err)
	}
	release, asked := make(chan struct{}), atomic.Int64{}
	w.lookAtHost = func() error {
		asked.Add(1)
		<-release
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := (hostProbe{w}).Check(ctx); !errors.Is(err, configsync.ErrBelow) ||
		err.Error() != "a disk does not answer: context deadline exceeded" {
		t.Errorf("the probe says %v, want ErrBelow and why", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if got := w.AttributeExit(ctx, crashExit()); got.Fault != lkg.FaultEnvironment ||
		got.Signature != "disk does not answer" || ctx.Err() != nil {
		t.Errorf("AttributeExit = %+v, context %v; want an environment fault within the deadline", got, ctx.Err())
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the disk was asked %d times while it did not answer, want once", n)
	}
	close(release)
	if err := (hostProbe{w}).Check(t.Context()); err != nil {
		t.Errorf("once it answers: %v, want nil", err)
	}
	w.lookAtHost = func() error { panic("no") }
	if err := (hostProbe{w}).Check(t.Context()); err == nil || errors.Is(err, configsync.ErrBelow) {
		t.Errorf("after a panic: %v, want a plain failure", err)
	}
}
