// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Operation is what a request asks for.
type Operation string

// The operations of a LeaseClient. Watches are not among the requests that are counted.
const (
	Get    Operation = "Get"
	Create Operation = "Create"
	Update Operation = "Update"
	Delete Operation = "Delete"
)

// A Request is one that a [Client] has made.
type Request struct {
	Client    string
	Operation Operation
	Name      string
	// Lease is what was sent with Create and Update.
	Lease *coordinationv1.Lease
	// Preconditions are those of a Delete.
	Preconditions *metav1.Preconditions
	// Err is the answer that the client got; nil: it was carried out.
	Err error
	// At is when the server was asked. Version is the resourceVersion of the change that it has made, "" if it has made none.
	At      time.Time
	Version string
}

// A Fault spoils requests. The zero values of Client, Operation and Name match any.
type Fault struct {
	Client    string
	Operation Operation
	Name      string
	// Times is how many requests it meets; 0 means 1, -1 all until [Server.ClearFaults].
	Times int
	// Delay is how long the answer takes.
	Delay time.Duration
	// Hang lets the client wait until its context ends.
	Hang bool
	// Err is the answer.
	Err error
	// Committed carries the request out all the same: the answer alone is lost.
	Committed bool
	// Do, if not nil, is called before the request is carried out, without the server's lock: to let something land in between.
	Do func()
}

type plannedFault struct {
	Fault
	left int
}

// Faults plans faults, in addition to those that are planned. A request that meets several has the first.
func (s *Server) Faults(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		left := f.Times
		if left == 0 {
			left = 1
		}
		s.faults = append(s.faults, &plannedFault{Fault: f, left: left})
	}
}

// ClearFaults takes all faults back.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Requests returns what was asked since the server was made or [Server.ForgetRequests] was called.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ForgetRequests empties the list of requests.
func (s *Server) ForgetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// fault returns the one that meets r.
func (s *Server) fault(r Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		met := (f.Client == "" || f.Client == r.Client) && (f.Operation == "" || f.Operation == r.Operation) && (f.Name == "" || f.Name == r.Name)
		if met && f.left != 0 {
			f.left--
			return f.Fault
		}
	}
	return Fault{}
}

// do carries a request out, with its faults, and waits with the answer for a machine that sleeps.
func (c *Client) do(ctx context.Context, r Request, act func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	r.Client = c.name
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("client rate limiter Wait returned an error: %w", err)
	}
	f := c.server.fault(r)
	if f.Do != nil {
		f.Do()
	}
	var lease *coordinationv1.Lease
	err := f.Err
	r.At = time.Now()
	if (err == nil && !f.Hang) || f.Committed {
		var carried error
		if lease, r.Version, carried = c.server.carry(act); err == nil {
			err = carried
		}
	}
	r.Err = err
	c.server.note(r)
	if waitErr := c.wait(ctx, f); waitErr != nil {
		return nil, waitErr
	}
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// carry carries a request out, and says under which version if it has changed anything.
func (s *Server) carry(act func() (*coordinationv1.Lease, error)) (lease *coordinationv1.Lease, version string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, "", refused()
	}
	before := s.version
	if lease, err = act(); err != nil {
		return nil, "", err
	}
	if s.version != before {
		version = strconv.FormatUint(s.version, 10)
	}
	return lease.DeepCopy(), version, nil
}

func (s *Server) note(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}

// wait lets the time of a fault pass, and a suspend.
func (c *Client) wait(ctx context.Context, f Fault) error {
	var answered <-chan time.Time
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		answered = t.C
	}
	if f.Delay > 0 || f.Hang {
		select {
		case <-answered:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.awake()
	return nil
}

// awake waits until the client's machine is not suspended.
func (c *Client) awake() { <-c.running() }

// running returns a channel that is closed while the client's machine is awake.
func (c *Client) running() <-chan struct{} {
	if c.clock == nil {
		return c.server.closed
	}
	return c.clock.running()
}
