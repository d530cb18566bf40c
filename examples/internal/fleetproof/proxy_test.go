// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A proxy forwards TCP connections, cuts those that are idle for too long, and all of them on demand.
type proxy struct {
	listener net.Listener
	target   string
	idle     atomic.Int64 // nanoseconds; 0 for never

	opened, starved, cut atomic.Int64

	mu   sync.Mutex
	open map[*pair]bool
}

// A pair is a connection and what it is forwarded to.
type pair struct {
	client, server net.Conn
	last           atomic.Int64 // nanoseconds of the last byte
	once           sync.Once
}

func (p *pair) close() {
	p.once.Do(func() { _ = errors.Join(p.client.Close(), p.server.Close()) })
}

// newProxy forwards to target until the test ends.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{listener: l, target: target, open: map[*pair]bool{}}
	t.Cleanup(func() { _ = l.Close(); p.drop() })
	go p.accept()
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.forward(client)
	}
}

func (p *proxy) forward(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil { // nobody is there: as it is without a proxy
		_ = client.Close()
		return
	}
	c := &pair{client: client, server: server}
	c.last.Store(time.Now().UnixNano())
	p.opened.Add(1)
	p.keep(c, true)
	defer p.keep(c, false)
	done := make(chan struct{})
	go p.starve(c, done)
	go c.copy(client, server)
	c.copy(server, client)
	close(done)
}

// copy forwards one direction, and ends both with it.
func (p *pair) copy(to, from net.Conn) {
	defer p.close()
	_, _ = io.Copy(noted{to, &p.last}, from)
}

// noted notes when it was written to.
type noted struct {
	net.Conn
	last *atomic.Int64
}

// Write implements io.Writer.
func (n noted) Write(b []byte) (int, error) {
	n.last.Store(time.Now().UnixNano())
	return n.Conn.Write(b)
}

// starve cuts a connection that is idle for too long, until done is closed.
func (p *proxy) starve(c *pair, done <-chan struct{}) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			if idle := p.idle.Load(); idle > 0 && now.UnixNano()-c.last.Load() >= idle {
				p.starved.Add(1)
				c.close()
				return
			}
		}
	}
}

func (p *proxy) keep(c *pair, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.open[c] = true
	} else {
		delete(p.open, c)
	}
}

// drop cuts all connections, and with them every watch.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		p.cut.Add(1)
		c.close()
	}
}
