// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// holdPoll is how often a name that another process holds is tried.
const holdPoll = 100 * time.Millisecond

// lowestPort is the first port that servers are given; those below belong to well-known services.
const lowestPort = 10000

// ports hands out TCP ports on 127.0.0.1 that stay usable while their server is down. They lie below the range
// from which the kernel takes ports for outgoing connections: one of those could otherwise sit on the port of a
// server that is about to start again. Processes that use this package are kept apart by a claim on each port, a
// socket in the abstract name space, which leaves no file and ends with its process.
type ports struct {
	mu     sync.Mutex // guards claims
	claims []io.Closer
}

// take returns a port that nothing uses and that no other process will be given.
func (p *ports) take() (int, error) {
	const tries = 500
	limit := ephemeralStart()
	for range tries {
		port := lowestPort + rand.IntN(limit-lowestPort)
		claim, err := net.Listen("unix", "@belay-testenv-port-"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		probe, err := net.Listen("tcp", address(port))
		if err != nil {
			claim.Close()
			continue
		}
		probe.Close()
		p.keep(claim)
		return port, nil
	}
	return 0, fmt.Errorf("finding a free port: none of %d tried between %d and %d is free", tries, lowestPort, limit)
}

// hold waits until no process holds name and holds it until release.
func (p *ports) hold(ctx context.Context, name string) error {
	ticker := time.NewTicker(holdPoll)
	defer ticker.Stop()
	for {
		claim, err := net.Listen("unix", "@belay-testenv-"+name)
		if err == nil {
			p.keep(claim)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for another process to end its use of %q: %w", name, ctx.Err())
		case <-ticker.C:
		}
	}
}

func (p *ports) keep(claim io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = append(p.claims, claim)
}

// release gives all ports and names back.
func (p *ports) release() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, claim := range p.claims {
		errs = append(errs, claim.Close())
	}
	p.claims = nil
	return errors.Join(errs...)
}

// ephemeralStart is the first port that the kernel may give to an outgoing connection, or the usual value of that
// where the kernel doesn't tell or leaves no room below it.
func ephemeralStart() int {
	data, _ := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	fields := strings.Fields(string(data))
	if len(fields) == 2 {
		if first, err := strconv.Atoi(fields[0]); err == nil && first > lowestPort+1000 {
			return first
		}
	}
	return 32768
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
