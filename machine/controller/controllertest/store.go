// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/belayproject/belay/machine"
	"github.com/belayproject/belay/machine/controller"
)

// A Hook is called with the name of a call, before its effect and after it. What it returns before is what the call fails with.
type Hook func(call string, after bool) error

func (h Hook) before(call string) error {
	if h == nil {
		return nil
	}
	return h(call, false)
}

func (h Hook) after(call string) {
	if h != nil {
		_ = h(call, true)
	}
}

// A Store keeps machines. The zero value is empty.
type Store struct {
	// Hook sees every call that writes.
	Hook Hook
	// Now is the time of deletions; nil is time.Now.
	Now func() time.Time

	mu      sync.Mutex
	version int
	all     map[machine.Key]machine.Machine
	stale   map[machine.Key]machine.Machine
	writes  map[string]int
}

var _ controller.Machines = (*Store)(nil)

// Put creates a machine, or changes what is wanted of it, as a user does: status and finalizer stay.
func (s *Store) Put(m machine.Machine) machine.Machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, there := s.all[m.Key]
	if there {
		m.UID, m.Status, m.Finalizer, m.Created, m.Deleted = old.UID, old.Status, old.Finalizer, old.Created, old.Deleted
		m.Generation = old.Generation + 1
	} else {
		m.Generation, m.Created = 1, s.now()
		if m.UID == "" {
			m.UID = fmt.Sprintf("uid-%s-%d", m.Key, s.version)
		}
	}
	return s.put(m)
}

// Delete asks for the end of a machine, as a user does.
func (s *Store) Delete(key machine.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, there := s.all[key]
	switch {
	case !there:
	case !m.Finalizer:
		delete(s.all, key)
	case m.Deleted.IsZero():
		m.Deleted = s.now()
		m.Generation++
		s.put(m)
	}
}

// Edit changes what is wanted of a machine, as a user does; false means that it isn't there.
func (s *Store) Edit(key machine.Key, change func(*machine.Machine)) bool {
	s.mu.Lock()
	m, there := s.all[key]
	s.mu.Unlock()
	if !there {
		return false
	}
	change(&m)
	s.Put(m)
	return true
}

// Freeze makes Get and List answer with what is there now, until Thaw.
func (s *Store) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = maps.Clone(s.all)
	if s.stale == nil {
		s.stale = map[machine.Key]machine.Machine{}
	}
}

// Thaw ends Freeze.
func (s *Store) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = nil
}

// Writes returns how often each write was made.
func (s *Store) Writes() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.writes)
}

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// put is called with the lock.
func (s *Store) put(m machine.Machine) machine.Machine {
	if s.all == nil {
		s.all = map[machine.Key]machine.Machine{}
	}
	s.version++
	m.Version = strconv.Itoa(s.version)
	s.all[m.Key] = m
	return m
}

// Get is from the cache.
func (s *Store) Get(_ context.Context, key machine.Key) (machine.Machine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.all
	if s.stale != nil {
		from = s.stale
	}
	return find(from, key)
}

// Live is not from the cache.
func (s *Store) Live(_ context.Context, key machine.Key) (machine.Machine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return find(s.all, key)
}

func find(in map[machine.Key]machine.Machine, key machine.Key) (machine.Machine, error) {
	m, there := in[key]
	if !there {
		return m, fmt.Errorf("machine %q: %w", key, fs.ErrNotExist)
	}
	return m, nil
}

// List is from the cache.
func (s *Store) List(context.Context) ([]machine.Machine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.all
	if s.stale != nil {
		from = s.stale
	}
	return slices.Collect(maps.Values(from)), nil
}

// ListLive is not from the cache.
func (s *Store) ListLive(context.Context) ([]machine.Machine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.all)), nil
}

// Twins looks through all machines.
func (s *Store) Twins(_ context.Context, m machine.Machine, id string) ([]machine.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var twins []machine.Key
	for key, other := range s.all {
		same := other.Spec.ProviderID == id || other.Instance != nil && other.Instance.ProviderID == id
		if key != m.Key && same {
			twins = append(twins, key)
		}
	}
	return twins, nil
}

// PutStatus stores the status alone.
func (s *Store) PutStatus(_ context.Context, m machine.Machine) (machine.Machine, error) {
	return s.write("PutStatus", m, func(stored *machine.Machine) { stored.Status = m.Status })
}

// SetFinalizer adds ours, or takes it off.
func (s *Store) SetFinalizer(_ context.Context, m machine.Machine, on bool) (machine.Machine, error) {
	return s.write("SetFinalizer", m, func(stored *machine.Machine) { stored.Finalizer = on })
}

// SetProviderID stores it in the spec.
func (s *Store) SetProviderID(_ context.Context, m machine.Machine, id string) (machine.Machine, error) {
	return s.write("SetProviderID", m, func(stored *machine.Machine) {
		stored.Spec.ProviderID = id
		stored.Generation++
	})
}

func (s *Store) write(call string, m machine.Machine, change func(*machine.Machine)) (machine.Machine, error) {
	if err := s.Hook.before(call); err != nil {
		return m, err
	}
	stored, err := s.swap(call, m, change)
	if err != nil {
		return m, err
	}
	s.Hook.after(call)
	return stored, nil
}

func (s *Store) swap(call string, m machine.Machine, change func(*machine.Machine)) (machine.Machine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := find(s.all, m.Key)
	switch {
	case err != nil:
		return m, err
	case stored.UID != m.UID || stored.Version != m.Version:
		return m, fmt.Errorf("machine %q is at version %s, not %s: %w", m.Key, stored.Version, m.Version, controller.ErrConflict)
	}
	change(&stored)
	if s.writes == nil {
		s.writes = map[string]int{}
	}
	s.writes[call]++
	if !stored.Deleted.IsZero() && !stored.Finalizer {
		delete(s.all, m.Key)
		return stored, nil
	}
	return s.put(stored), nil
}
