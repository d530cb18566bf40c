// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouttest

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"sync"

	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/protocol"
)

// A Memory is a [rollout.LedgerStore] that forgets all with its process. The zero Memory has no ledger.
type Memory struct {
	mu      sync.Mutex
	ledger  protocol.Ledger
	version int
}

// Load implements [rollout.LedgerStore].
func (m *Memory) Load(ctx context.Context) (protocol.Ledger, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return protocol.Ledger{}, "", err
	}
	if m.version == 0 {
		return protocol.Ledger{}, "", fmt.Errorf("the ledger: %w", fs.ErrNotExist)
	}
	return m.ledger, strconv.Itoa(m.version), nil
}

// Store implements [rollout.LedgerStore].
func (m *Memory) Store(ctx context.Context, l protocol.Ledger, version string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if is := strconv.Itoa(m.version); version != is && (m.version != 0 || version != "") {
		return "", fmt.Errorf("version %q, it is %q: %w", version, is, rollout.ErrConflict)
	}
	m.ledger, m.version = l, m.version+1
	return strconv.Itoa(m.version), nil
}
