// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// A Server keeps Leases as the API server does, in memory. It may be used by any number of clients at once.
type Server struct {
	mu       sync.Mutex
	version  uint64
	born     int
	leases   map[types.NamespacedName]*coordinationv1.Lease
	history  []change
	dropped  uint64 // the newest version that watches can not go back to
	changed  chan struct{}
	down     bool
	broken   chan struct{} // closed when all watches end
	closed   chan struct{} // closed from the beginning
	faults   []*plannedFault
	requests []Request
}

// A change is an event with the Lease before it, by which selectors are judged.
type change struct {
	version uint64
	kind    watch.EventType
	lease   *coordinationv1.Lease
	before  *coordinationv1.Lease
}

// NewServer returns a server without Leases.
func NewServer() *Server {
	closed := make(chan struct{})
	close(closed)
	return &Server{
		version: 1, leases: map[types.NamespacedName]*coordinationv1.Lease{},
		changed: make(chan struct{}), broken: make(chan struct{}), closed: closed,
	}
}

// Leases returns all Leases, by namespace and name.
func (s *Server) Leases() []*coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(s.leases), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	leases := make([]*coordinationv1.Lease, 0, len(keys))
	for _, k := range keys {
		leases = append(leases, s.leases[k].DeepCopy())
	}
	return leases
}

// Stop makes each request fail as if nobody listened, and ends the watches.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	s.dropWatches()
}

// Start ends what Stop began. The Leases are as they were.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
}

// DropWatches ends all watches. With compact they can not go on where they were: a client has to list again.
func (s *Server) DropWatches(compact bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if compact {
		s.dropped, s.history = s.version, nil
	}
	s.dropWatches()
}

func (s *Server) dropWatches() {
	close(s.broken)
	s.broken = make(chan struct{})
}

// Restore makes the server forget all that was written since snapshot was taken, as a restore from a backup does whose resourceVersions
// start again: the Leases are those of snapshot, under new versions from 2 on.
func (s *Server) Restore(snapshot []*coordinationv1.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.history, s.leases = 1, nil, map[types.NamespacedName]*coordinationv1.Lease{}
	for _, l := range snapshot {
		kept := l.DeepCopy()
		s.version++
		kept.ResourceVersion = strconv.FormatUint(s.version, 10)
		s.leases[key(kept)] = kept
	}
	s.dropped = s.version
	s.dropWatches()
}

func key(l *coordinationv1.Lease) types.NamespacedName {
	return types.NamespacedName{Namespace: l.Namespace, Name: l.Name}
}

// commit stores a change and tells the watches. Nobody changes lease after that. The lock is held.
func (s *Server) commit(kind watch.EventType, lease *coordinationv1.Lease) {
	s.version++
	k := key(lease)
	before := s.leases[k]
	lease.ResourceVersion = strconv.FormatUint(s.version, 10)
	if kind == watch.Deleted {
		delete(s.leases, k)
	} else {
		s.leases[k] = lease
	}
	s.history = append(s.history, change{version: s.version, kind: kind, lease: lease, before: before})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) uid() types.UID {
	s.born++
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.born))
}
