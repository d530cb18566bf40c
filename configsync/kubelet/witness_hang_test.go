// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belayproject/belay/internal/testproc"
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
