// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/belayproject/belay/checkpoint"
)

// maxPayload is the limit of a checkpoint.Store that was told none, in bytes.
const maxPayload = 4 << 20

// Memory is a store in memory with the meaning, the names, the limits and the errors of a checkpoint.Store. The zero
// value is an empty one. Close ends it until Reopen: that is its restart, and the records are still there.
type Memory struct {
	// OnCall, if set, is asked before each call that would succeed: op is "put", "get", "delete" or "list", name the
	// stream or the directory. Its error is the call's, and nothing is done. An error for a put or a delete should match
	// checkpoint.ErrNotWritten or checkpoint.ErrIndeterminate; one that matches neither is taken for the former. It must
	// not call the Memory.
	OnCall func(op, name string) error
	// MaxPayload is the largest payload in bytes; 0 = 4 MiB.
	MaxPayload int64

	mu      sync.Mutex
	closed  bool
	records map[string]checkpoint.Record
	top     map[string]uint64 // the highest generation of each stream, also of those that were deleted
}

// Put makes payload the newest record of a stream, as checkpoint.Store does.
func (m *Memory) Put(ctx context.Context, stream string, payload []byte) error {
	if err := m.put(ctx, stream, payload); err != nil {
		return fmt.Errorf("putting %q: %w", brief(stream), classed(err))
	}
	return nil
}

func (m *Memory) put(ctx context.Context, stream string, payload []byte) error {
	if err := checkpoint.ValidateStream(stream); err != nil {
		return err
	}
	limit := m.MaxPayload
	if limit == 0 {
		limit = maxPayload
	}
	if int64(len(payload)) > limit {
		return fmt.Errorf("%w: %d bytes, may have %d", checkpoint.ErrTooLarge, len(payload), limit)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.admit(ctx, "put", stream); err != nil {
		return err
	}
	sum := sha256.Sum256(payload)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if old, ok := m.records[stream]; ok && old.Digest == digest {
		return nil
	}
	if m.records == nil {
		m.records, m.top = map[string]checkpoint.Record{}, map[string]uint64{}
	}
	m.top[stream]++
	m.records[stream] = checkpoint.Record{
		Stream: stream, Generation: m.top[stream], Digest: digest, Writer: "-", Payload: bytes.Clone(payload),
	}
	return nil
}

// Get returns the payload of the newest record of a stream, as checkpoint.Store does.
func (m *Memory) Get(ctx context.Context, stream string) ([]byte, error) {
	rec, err := m.Read(ctx, stream)
	return rec.Payload, err
}

// Read is Get with the generation and the digest.
func (m *Memory) Read(ctx context.Context, stream string) (checkpoint.Record, error) {
	rec, err := m.read(ctx, stream)
	if err != nil {
		return checkpoint.Record{}, fmt.Errorf("reading %q: %w", brief(stream), err)
	}
	return rec, nil
}

func (m *Memory) read(ctx context.Context, stream string) (checkpoint.Record, error) {
	if err := checkpoint.ValidateStream(stream); err != nil {
		return checkpoint.Record{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.admit(ctx, "get", stream); err != nil {
		return checkpoint.Record{}, err
	}
	rec, ok := m.records[stream]
	if !ok {
		return checkpoint.Record{}, fs.ErrNotExist
	}
	rec.Payload = append([]byte{}, rec.Payload...)
	return rec, nil
}

// Delete removes a stream, as checkpoint.Store does.
func (m *Memory) Delete(ctx context.Context, stream string) error {
	err := checkpoint.ValidateStream(stream)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		err = m.admit(ctx, "delete", stream)
	}
	if err != nil {
		return fmt.Errorf("deleting %q: %w", brief(stream), classed(err))
	}
	delete(m.records, stream)
	return nil
}

// List returns the names of the streams in a directory, as checkpoint.Store does.
func (m *Memory) List(ctx context.Context, dir string) ([]string, error) {
	prefix := ""
	if dir != "" {
		prefix = dir + "/"
		if err := checkpoint.ValidateStream(prefix + "x"); err != nil {
			return nil, fmt.Errorf("listing %q: %w", brief(dir), err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.admit(ctx, "list", dir); err != nil {
		return nil, fmt.Errorf("listing %q: %w", brief(dir), err)
	}
	var names []string
	for stream := range m.records {
		if base, ok := strings.CutPrefix(stream, prefix); ok && !strings.Contains(base, "/") {
			names = append(names, stream)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Close ends the store: until Reopen, every call returns fs.ErrClosed.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Reopen undoes Close, as the next process that opens the same directory would.
func (m *Memory) Reopen() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = false
}

// admit decides whether a call may go on. Called with mu.
func (m *Memory) admit(ctx context.Context, op, name string) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case m.closed:
		return fs.ErrClosed
	case m.OnCall != nil:
		return m.OnCall(op, name)
	}
	return nil
}

// classed gives an error of a write the class that it has to have.
func classed(err error) error {
	if errors.Is(err, checkpoint.ErrNotWritten) || errors.Is(err, checkpoint.ErrIndeterminate) {
		return err
	}
	return fmt.Errorf("%w: %w", checkpoint.ErrNotWritten, err)
}

func brief(name string) string { return name[:min(len(name), 300)] }
