// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync"

	"github.com/belayproject/belay/rollout/nodeagent"
	"github.com/belayproject/belay/rollout/protocol"
)

// A Fault is what goes wrong with one call of [Shadows].
type Fault string

// Faults.
const (
	// NoFault: the call does what it should.
	NoFault Fault = ""
	// Conflict: somebody has written first. A Read has no conflicts.
	Conflict Fault = "Conflict"
	// Unreachable: nothing was done, and the error says that no answer was had.
	Unreachable Fault = "Unreachable"
	// LostAnswer: it was done, and the error says that no answer was had.
	LostAnswer Fault = "LostAnswer"
)

// ErrFault is the error of a call to which no answer is had.
var ErrFault = errors.New("no answer from the server")

// Shadows is the shadow of one node in memory: what the agent sees of it as [nodeagent.Shadows], and what controllers do to it. The zero value has
// no shadow; [Shadows.Create] makes one.
type Shadows struct {
	// OnCall, if set, is asked before each call of an agent: op is "read" or "store". After is called when a store was done, before it
	// is answered.
	OnCall func(op string) Fault
	After  func(nodeagent.Status)

	mu      sync.Mutex
	shadow  nodeagent.Shadow
	version int // 0: there is none
	made    int // versions so far
	history []nodeagent.Status
}

// Read implements [nodeagent.Shadows].
func (s *Shadows) Read(ctx context.Context) (nodeagent.Shadow, string, error) {
	if s.fault("read") != NoFault {
		return nodeagent.Shadow{}, "", ErrFault
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nodeagent.Shadow{}, "", ctx.Err()
	case s.version == 0:
		return nodeagent.Shadow{}, "", fmt.Errorf("the shadow: %w", fs.ErrNotExist)
	}
	return s.shadow, strconv.Itoa(s.version), nil
}

// Store implements [nodeagent.Shadows].
func (s *Shadows) Store(ctx context.Context, status nodeagent.Status, version string) error {
	fault := s.fault("store")
	if fault == Unreachable {
		return ErrFault
	}
	if err := s.store(ctx, status, version, fault); err != nil {
		return err
	}
	if s.After != nil {
		s.After(status)
	}
	if fault == LostAnswer {
		return ErrFault
	}
	return nil
}

func (s *Shadows) store(ctx context.Context, status nodeagent.Status, version string, fault Fault) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if fault == Conflict || s.version == 0 || version != strconv.Itoa(s.version) {
		return fmt.Errorf("version %q, it is %d: %w", version, s.version, nodeagent.ErrConflict)
	}
	s.shadow.Status = status
	s.history = append(s.history, status)
	s.next()
	return nil
}

// Create makes a new shadow, as a controller that has read that ledger, of a Node of that name and UID.
func (s *Shadows) Create(node, uid string, l protocol.Ledger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := protocol.NewShadow(node, uid, l)
	s.shadow = nodeagent.Shadow{Node: node, UID: uid, Orders: sh.Orders}
	s.next()
}

// Delete removes the shadow.
func (s *Shadows) Delete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shadow, s.version = nodeagent.Shadow{}, 0
}

// Order lets a controller write orders on the live version of the shadow.
func (s *Shadows) Order(orders func(protocol.Shadow) (protocol.Orders, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := orders(s.protocol())
	if err != nil {
		return err
	}
	s.shadow.Orders = o
	s.next()
	return nil
}

// Shadow is the live version. It is the zero Shadow if there is none.
func (s *Shadows) Shadow() nodeagent.Shadow {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shadow
}

// Protocol is the part of it that the protocol speaks of.
func (s *Shadows) Protocol() protocol.Shadow {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.protocol()
}

// History are the statuses that were stored, in order.
func (s *Shadows) History() []nodeagent.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]nodeagent.Status(nil), s.history...)
}

func (s *Shadows) protocol() protocol.Shadow {
	return protocol.Shadow{Node: s.shadow.Node, UID: s.shadow.UID, Orders: s.shadow.Orders, Report: s.shadow.Status.Report}
}

// next numbers a version. No number is used twice, also not by a shadow that was made anew.
func (s *Shadows) next() {
	s.made++
	s.version = s.made
}

func (s *Shadows) fault(op string) Fault {
	if s.OnCall == nil {
		return NoFault
	}
	return s.OnCall(op)
}
