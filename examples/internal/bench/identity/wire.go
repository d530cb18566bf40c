// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// A wire counts what goes over the connections of a set of clients. Its gate stops all requests for a moment, so that counts on both sides of
// the wire are of the same requests.
type wire struct {
	gate sync.RWMutex

	mu     sync.Mutex
	counts counts
	took   figures[time.Duration] // of PUTs, until the header of the answer

	up, down atomic.Int64 // bytes, as TLS sends them
}

// counts are those of requests since the beginning.
type counts struct{ all, gets, puts, renewed, refused, failed int }

// client gives a configuration a connection of its own, which the wire counts.
func (w *wire) client(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	var dialer net.Dialer
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return meteredConn{conn, w}, nil
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return metered{w, next} })
	return config
}

// A meteredConn counts bytes.
type meteredConn struct {
	net.Conn
	wire *wire
}

func (c meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.wire.down.Add(int64(n))
	return n, err
}

func (c meteredConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.wire.up.Add(int64(n))
	return n, err
}

type metered struct {
	wire *wire
	next http.RoundTripper
}

// RoundTrip counts a request. It counts as under way until its answer has been read.
func (m metered) RoundTrip(r *http.Request) (*http.Response, error) {
	m.wire.gate.RLock()
	sent := time.Now()
	answer, err := m.next.RoundTrip(r)
	m.wire.count(r.Method, answer, time.Since(sent))
	if err != nil {
		m.wire.gate.RUnlock()
		return answer, err
	}
	answer.Body = &body{ReadCloser: answer.Body, closed: m.wire.gate.RUnlock}
	return answer, nil
}

func (w *wire) count(method string, answer *http.Response, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.all++
	switch method {
	case http.MethodGet:
		w.counts.gets++
	case http.MethodPut:
		w.counts.puts++
		w.took = append(w.took, took)
	}
	switch {
	case answer == nil:
		w.counts.failed++
	case answer.StatusCode == http.StatusTooManyRequests:
		w.counts.refused++
	case answer.StatusCode >= http.StatusInternalServerError:
		w.counts.failed++
	case answer.StatusCode == http.StatusOK && method == http.MethodPut:
		w.counts.renewed++
	}
}

// A body says when it is closed.
type body struct {
	io.ReadCloser
	once   sync.Once
	closed func()
}

func (b *body) Close() error {
	defer b.once.Do(b.closed)
	return b.ReadCloser.Close()
}

// A reading is what a wire has counted by a moment.
type reading struct {
	counts
	up, down int64
	took     int // how many times there are
}

func (w *wire) read() reading {
	w.mu.Lock()
	defer w.mu.Unlock()
	return reading{w.counts, w.up.Load(), w.down.Load(), len(w.took)}
}

// times are those of the PUTs between two readings.
func (w *wire) times(from, until reading) figures[time.Duration] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.took[from.took:until.took:until.took]
}

// since is the difference of two readings.
func (r reading) since(then reading) reading {
	return reading{
		counts: counts{
			all: r.all - then.all, gets: r.gets - then.gets, puts: r.puts - then.puts,
			renewed: r.renewed - then.renewed, refused: r.refused - then.refused, failed: r.failed - then.failed,
		},
		up: r.up - then.up, down: r.down - then.down, took: r.took - then.took,
	}
}

// still waits until nothing is under way, and calls f before anything else is.
func (w *wire) still(f func() error) error {
	w.gate.Lock()
	defer w.gate.Unlock()
	return f()
}
