// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package lkgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
)

// ErrStopped is what a stopped store says.
var ErrStopped = errors.New("store is stopped")

// A Stop is what happens at the write a store is told to stop at.
type Stop int

// The ways to stop. StopFull goes on refusing; the others stand for the death of the process.
const (
	StopBefore Stop = iota // the write is lost
	StopAfter              // the write is durable, its acknowledgement is lost
	StopFull               // this write and all later ones are refused, the process lives on
)

// A Store keeps records in memory, as an [lkg.Store]. It is durable by definition.
type Store struct {
	// Filter, if set, sees every write that is about to be kept, and may change or drop it. It serves to build lying
	// stores, which a suite has to catch.
	Filter func(stream string, payload []byte) (kept []byte, drop bool)

	records map[string][]byte
	damage  map[string]error
	writes  int
	changes int // of what a reader sees
	stopAt  int
	how     Stop
	onStop  func()
}

// NewStore gives an empty store.
func NewStore() *Store {
	return &Store{records: map[string][]byte{}, damage: map[string]error{}}
}

// Get gives a copy of a record.
func (s *Store) Get(ctx context.Context, stream string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.damage[stream]; err != nil {
		return nil, fmt.Errorf("reading %q: %w", stream, err)
	}
	b, ok := s.records[stream]
	if !ok {
		return nil, fmt.Errorf("reading %q: %w", stream, fs.ErrNotExist)
	}
	return bytes.Clone(b), nil
}

// Put replaces a record. The same payload again is no write.
func (s *Store) Put(ctx context.Context, stream string, payload []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if old, ok := s.records[stream]; ok && bytes.Equal(old, payload) && s.damage[stream] == nil {
		return nil
	}
	s.writes++
	switch {
	case s.stopAt == 0 || s.writes < s.stopAt:
		s.keep(stream, payload)
		return nil
	case s.writes == s.stopAt && s.how == StopAfter:
		s.keep(stream, payload)
	}
	if s.onStop != nil && s.how != StopFull {
		s.onStop()
	}
	return fmt.Errorf("writing %q: %w", stream, ErrStopped)
}

func (s *Store) keep(stream string, payload []byte) {
	drop := false
	if s.Filter != nil {
		payload, drop = s.Filter(stream, payload)
	}
	if !drop {
		s.Set(stream, payload)
	}
}

// StopAt stops the store at its n-th write from the beginning of its life. Zero lets it go on.
func (s *Store) StopAt(n int, how Stop) { s.stopAt, s.how = n, how }

// Writes is how many writes were asked for so far.
func (s *Store) Writes() int { return s.writes }

// Damage makes every Get of a record fail with err, until the record is written again.
func (s *Store) Damage(stream string, err error) {
	s.damage[stream] = err
	s.changes++
}

// Records gives a copy of everything in the store.
func (s *Store) Records() map[string][]byte {
	c := maps.Clone(s.records)
	for k, v := range c {
		c[k] = bytes.Clone(v)
	}
	return c
}

// Set puts a record behind everybody's back. It is not a write.
func (s *Store) Set(stream string, payload []byte) {
	s.records[stream] = append([]byte{}, payload...)
	delete(s.damage, stream)
	s.changes++
}
