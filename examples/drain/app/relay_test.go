// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// A relay is a TCP address before the API server that a test can take away.
type relay struct {
	listener net.Listener

	mu      sync.Mutex
	stopped bool
	open    []net.Conn
}

// startRelay relays connections to target until the test ends or stops it.
func startRelay(t *testing.T, target string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			r.keep(client, server)
			running.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
			running.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
		}
	})
	t.Cleanup(func() {
		r.stop()
		running.Wait()
	})
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }

// keep remembers connections, which end with the relay.
func (r *relay) keep(connections ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = append(r.open, connections...)
	if r.stopped {
		r.closeAll()
	}
}

// stop ends all connections and refuses further ones.
func (r *relay) stop() {
	_ = r.listener.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	r.closeAll()
}

func (r *relay) closeAll() {
	for _, c := range r.open {
		_ = c.Close()
	}
	r.open = nil
}

// notYet is the error of a process that has not said yet what it is asked for.
func notYet(p *process) error { return fmt.Errorf("not yet\n%s", p) }
